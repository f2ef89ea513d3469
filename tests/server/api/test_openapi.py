"""The OpenAPI document is valid, reads well, and is the one a server serves."""

import json
import re

import httpx
import pytest
import schemathesis

from tests.support.http_helpers import Operation, api_document, operations
from tests.support.serving import RunningServer

DOCUMENT = api_document()
SCHEMAS = DOCUMENT["components"]["schemas"]


def test_the_document_is_valid_openapi() -> None:
    schemathesis.openapi.from_dict(DOCUMENT).validate()


def test_a_server_serves_it(api: httpx.Client) -> None:
    assert api.get("/openapi.json").json() == DOCUMENT


def test_every_reference_leads_somewhere() -> None:
    found = set(re.findall(r'"#/components/([^"]+)"', json.dumps(DOCUMENT)))
    assert {name for name in found if name.split("/")[1] not in DOCUMENT["components"][name.split("/")[0]]} == set()


@pytest.mark.parametrize("operation", operations(), ids=str)
def test_an_operation_has_one_sentence_and_describes_what_it_takes(operation: Operation) -> None:
    assert operation.about["summary"].endswith(".")
    assert "description" not in operation.about
    assert [found["name"] for found in operation.about.get("parameters", ()) if not found["description"]] == []


@pytest.mark.parametrize("operation", operations(), ids=str)
def test_an_operation_describes_its_answers_and_that_it_may_fail(operation: Operation) -> None:
    answers = dict(operation.about["responses"])
    assert answers.pop("default") == {"$ref": "#/components/responses/Problem"}
    assert [answer for answer in answers.values() if not answer["description"].endswith(".")] == []


@pytest.mark.parametrize("name", SCHEMAS)
def test_a_type_says_what_it_is(name: str) -> None:
    assert SCHEMAS[name]["description"].endswith(".")


def every_operation() -> dict[str, Operation]:
    """All of them, second places and other protocols included, by name."""
    return {
        str(found): found
        for path, item in DOCUMENT["paths"].items()
        for method, about in item.items()
        for found in [Operation(method=method.upper(), path=path, about=about)]
    }


OPERATIONS = every_operation()
ALIASES = [name for name in OPERATIONS if name.endswith(".alias")]
PROTOCOLS = ("/messages", "/load-session", "/invoke", "/api/chat", "/v1/sessions", "/agui", "/acp", "/mcp")


def test_the_doors_of_other_protocols_are_described() -> None:
    assert [path for path in (*PROTOCOLS, "/sessions/{session}", "/healthz") if path not in DOCUMENT["paths"]] == []
    posts = [DOCUMENT["paths"][path]["post"] for path in ("/messages", "/agui", "/acp", "/mcp")]
    bodies = [post["requestBody"]["content"]["application/json"]["schema"]["$ref"].split("/")[-1] for post in posts]
    assert bodies == ["ChatRequest", "RunAgentInput", "JsonRpcMessage", "JsonRpcMessage"]


@pytest.mark.parametrize("name", OPERATIONS)
def test_an_alias_names_an_operation_that_is_there(name: str) -> None:
    assert OPERATIONS[name].about.get("x-alias-of", name) in OPERATIONS


@pytest.mark.parametrize("name", ALIASES)
def test_an_alias_answers_like_its_operation(server: RunningServer, name: str) -> None:
    alias = OPERATIONS[name]
    main = OPERATIONS[alias.about["x-alias-of"]]
    answers = []
    for found in (alias, main):
        path = re.sub(r"{\w+}", "nobody", found.path)
        answer = httpx.request(found.method, f"{server.url}{path}", json={} if found.method == "POST" else None)
        answers.append((answer.status_code, answer.text.replace(path, "")))
    assert answers[0] == answers[1]


def test_only_health_and_addresses_that_are_a_permission_are_open_to_everyone() -> None:
    open_ones = {str(found) for found in operations() if found.about.get("security") == []}
    of_runners_and_senders = {"catalogue.send-upload", "runner.register", "triggers.deliver"}
    of_people_without_a_token_yet = {"system.providers", "sign-in.begin", "sign-in.finish", "sign-in.end"}
    assert open_ones == {"system.health", "system.ready"} | of_runners_and_senders | of_people_without_a_token_yet


@pytest.mark.parametrize("path", sorted(DOCUMENT["paths"]))
def test_options_names_every_method_of_a_path(server: RunningServer, path: str) -> None:
    answer = httpx.options(f"{server.url}{re.sub(r'{[^}]+}', 'nobody', path)}")
    described = {method.upper() for method in DOCUMENT["paths"][path]}
    assert set(answer.headers["allow"].split(", ")) - {"OPTIONS", "HEAD"} == described
