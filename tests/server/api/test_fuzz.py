"""Generated requests against every operation: no answer is a crash, and every answer is as documented.

Streams stay open by design and would hang here: their operation is left out, and where a stream is an alternative to a
document, the document is asked for.
"""

import re
from collections.abc import Iterator

import pytest
import requests
from hypothesis import HealthCheck, Phase, settings
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from tests.support.generated import Case, labels, send_all
from tests.support.http_helpers import DIALECTS
from tests.support.serving import RunningServer, running_server

CHECKS = [not_a_server_error, status_code_conformance, content_type_conformance, response_schema_conformance]
OPERATIONS = labels(without=r"^(events\.stream|relay\..*|connect\.handshake)$", tags=DIALECTS)
ABOUT_WHAT_EXISTS = [operation for operation in OPERATIONS if re.search(r"{(session|agent)}|/sessions$", operation)]
READS = frozenset({"GET", "HEAD", "OPTIONS"})
WRITES = [name for name in labels(without=r"^relay\.") if name.split()[0] not in READS]
_TOKEN = "the-token-of-the-server"
GENERATED = settings(
    max_examples=25,
    derandomize=True,
    database=None,
    deadline=None,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=list(HealthCheck),
)


@pytest.mark.parametrize("operation", OPERATIONS)
def test_every_answer_to_strangers_is_as_documented(
    operation: str, alone: RunningServer, client: requests.Session
) -> None:
    send_all(operation, lambda case: _call(case, alone, client, {}), GENERATED)


@pytest.mark.parametrize("operation", ABOUT_WHAT_EXISTS)
def test_every_answer_about_what_exists_is_as_documented(
    operation: str, alone: RunningServer, client: requests.Session, session: str
) -> None:
    send_all(operation, lambda case: _call(case, alone, client, {"session": session, "agent": "mock"}), GENERATED)


def _call(case: Case, server: RunningServer, client: requests.Session, known: dict[str, str]) -> None:
    """Send a request with names that exist put in, and without asking for a stream."""
    if isinstance(case.query, dict):
        case.query.pop("stream", None)
    if isinstance(case.body, dict) and isinstance(runtime := case.body.get("runtime"), dict):
        runtime.pop("labels", None)  # no runner has those, which is a 503
    for place in (case.path_parameters, case.body):
        if isinstance(place, dict):
            place |= {name: value for name, value in known.items() if name in place}
    case.call_and_validate(
        base_url=server.url, session=client, headers={"Accept": "application/json"}, checks=CHECKS, timeout=60
    )


@pytest.fixture(scope="module")
def viewer(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[RunningServer, requests.Session]]:
    """A server with a token, and a client whose key only reads."""
    with (
        running_server(tmp_path_factory.mktemp("viewer") / "state", "--token", _TOKEN) as server,
        requests.Session() as session,
    ):
        wanted = {"name": "reader", "role": "viewer"}
        headers = {"Authorization": f"Bearer {_TOKEN}"}
        made = requests.post(f"{server.url}/api/v1/api-keys", json=wanted, headers=headers, timeout=60)
        session.headers["Authorization"] = f"ApiKey {made.json()['key']}"
        yield server, session


@pytest.mark.parametrize("operation", WRITES)
def test_who_only_reads_changes_nothing_whatever_is_sent(
    operation: str, viewer: tuple[RunningServer, requests.Session]
) -> None:
    server, session = viewer

    def call(case: Case) -> None:
        if case.method.upper() in READS:  # other methods are tried too
            return
        answer = case.call(base_url=server.url, session=session, timeout=60)
        assert answer.status_code >= 400, f"{operation} answered {answer.status_code}"

    send_all(operation, call, settings(GENERATED, max_examples=5))
