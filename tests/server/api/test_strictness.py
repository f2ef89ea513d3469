"""What is valid by the API's document is not refused as invalid: the document is as strict as the code."""

import re
from contextlib import closing

import pytest
import requests
from hypothesis import HealthCheck, Phase, settings

from tests.support.generated import Case, labels, send_all
from tests.support.serving import RunningServer

BEYOND_A_SCHEMA = {
    "fields that go together": r"needs `message` or `parts`|`data` or `path`|is for a workspace|exclude each other"
    r"|must be provided when|cannot be combined with|needs repo\.mode=git|data\.messages is required"
    r"|is required, unless|fill a template; name it"
    r"|needs the ask's id|pull request needs a token|which forge|Acp-(Connection|Session)-Id is missing",
    "fields of one kind of thing": r"(is for|is required for|is required with|with) the (scope|policy|scheme) ",
    "places without a session": r"give an absolute path",
    "something to say, in one of several places": r"prompt is empty|must not be empty|has no text, image or file",
    "who spoke last": r"must be from the user|decides no permission|last message must be the user's",
    "what the agent offers": r"agentMode:|takes none",
    "what no agent takes": r"skills: are not supported|mcp\.\S*: is not supported|content of type '"
    r"|is not fetched",
    "paths and values of a filter": r'"filter(\.|")',
    "answers to what was never asked": r"JSONRPCResponse\.result",
    "bytes, which are not characters": r"File name too long|longer than \d+ bytes",
    "addresses that the server may call": r"is not an address that this server may call",
    "types of events, and their families": r"is no type of events",
    "words that can be looked for": r"has no word to look for",
    "characters that can be printed": r"must be a line of",
    "paths that lead out": r"is not a path inside the workspace",
    "free words of an application": r"forwardedProps\.\w+: |messages\[\d+\]\.content",
}
"""Reasons to refuse a request that a schema cannot say, or not without becoming unreadable."""
_BEYOND = re.compile("|".join(BEYOND_A_SCHEMA.values()))

GENERATED = settings(
    max_examples=10,
    derandomize=True,
    database=None,
    deadline=None,
    phases=[Phase.generate],
    suppress_health_check=list(HealthCheck),
)


@pytest.mark.parametrize("operation", labels(without=r"\.alias$"))
def test_what_is_valid_by_the_document_is_not_refused(
    operation: str, alone: RunningServer, client: requests.Session, session: str
) -> None:
    known = {"session": session, "execution": session, "chat": session, "agent": "mock"}

    def send(case: Case) -> None:
        _name_what_exists(case, known)
        wanted = case.as_transport_kwargs(base_url=alone.url)
        with closing(client.request(**wanted, stream=True, timeout=60)) as answer:
            assert answer.status_code != 400 or _BEYOND.search(answer.text), answer.text

    send_all(operation, send, GENERATED, only_valid=True)


def _name_what_exists(case: Case, known: dict[str, str]) -> None:
    for place in (case.path_parameters, case.body):
        if isinstance(place, dict):
            place |= {name: value for name, value in known.items() if isinstance(place.get(name), str)}
    match case.body:
        case {"agent": dict(agent)} if "type" in agent:
            agent["type"] = "mock"
