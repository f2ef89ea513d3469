"""The OpenAPI document is valid, reads well, and is the one a server serves."""

import json
import re

import httpx
import pytest
import schemathesis

from tests.server.http_helpers import Operation, build_document, operations

DOCUMENT = build_document()
SCHEMAS = DOCUMENT["components"]["schemas"]


def test_the_document_is_valid_openapi() -> None:
    schemathesis.openapi.from_dict(DOCUMENT).validate()


def test_a_server_serves_it(api: httpx.Client) -> None:
    assert api.get("/openapi.json").json() == json.loads(json.dumps(DOCUMENT))


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


def test_only_health_is_open_to_everyone() -> None:
    open_ones = {str(found) for found in operations() if found.about.get("security") == []}
    assert open_ones == {"system.health", "system.ready"}
