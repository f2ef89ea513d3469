"""A session is called by the first sentence of what was asked, then as its agent says, unless a person named it."""

from pathlib import Path

import pytest

from ostler.client import Client, SyncSession
from ostler.server.sessions.log.titles import fork_title, in_one_line, title_of
from ostler.wire.events import SessionInfo
from tests.support.serving import running_server


@pytest.mark.parametrize(
    ("prompt", "title"),
    [
        ("Fix the flaky test.", "Fix the flaky test"),
        ("Fix the flaky test. It fails every second time.\nLook at the log.", "Fix the flaky test"),
        ("please add a discount to the order", "Add a discount to the order"),
        ("Hi, could you please look at v1.2.3 of main.py? It is slow.", "Look at v1.2.3 of main.py"),
        ("# Plan\n\n- first\n- second", "Plan"),
        ("```python\nprint(1)\n```\nWhy does this print 1?", "Why does this print 1"),
        ("```\nonly code\n```", "only code"),
        ("Hello", "Hello"),
        ("please", "please"),
        ("mock: say hi", "mock: say hi"),
        ("iPhone layout is broken", "iPhone layout is broken"),
        ("Wait... what?", "Wait... what"),
        ("  \n ", None),
        ("", None),
        ("x" * 100, "x" * 71 + "…"),
    ],
)
def test_the_first_sentence_is_the_title(prompt: str, title: str | None) -> None:
    assert title_of(prompt) == title


def test_a_long_one_is_cut_between_words() -> None:
    found = title_of("Find out " + "why the build takes so long on the small machine " * 3)
    assert found == "Find out why the build takes so long on the small machine why the build…"


def test_forks_differ_from_their_parents() -> None:
    first = fork_title("Tea")
    assert (first, fork_title(first), fork_title(fork_title(first))) == (
        "Fork of Tea",
        "Fork 2 of Tea",
        "Fork 3 of Tea",
    )


def test_a_title_that_somebody_chose_is_one_line_that_can_be_read() -> None:
    assert in_one_line("Fix\x00 the\n\tbug \u202e now") == "Fix the bug now"
    assert in_one_line("family \N{WOMAN}\u200d\N{GIRL}") == "family \N{WOMAN}\u200d\N{GIRL}"
    assert (len(in_one_line("x" * 100_000)), in_one_line("")) == (200, "")


TITLED = "mock: title By the agent\nmock: say done"


def titles(client: Client, session: SyncSession) -> list[str]:
    """What those who follow the log would call it, from first to last."""
    events = client.events.list(session.id).events
    return [event.data.title for event in events if isinstance(event, SessionInfo) and event.data.title]


def test_the_agent_renames_what_nobody_named_and_nothing_that_a_person_did(tmp_path: Path) -> None:
    with running_server(tmp_path / "state") as server, Client(server.url) as client:
        free = client.sessions.create("mock", key="free")
        free.run(TITLED)
        named = client.sessions.create("mock", key="named", title=" By\nme")
        named.run(TITLED)
        renamed = client.sessions.create("mock", key="renamed")
        renamed.run("mock: title Too early")
        renamed.update(title="Renamed")
        renamed.run(TITLED)
        assert [client.sessions.get(key).title for key in ("free", "named", "renamed")] == [
            "By the agent",
            "By me",
            "Renamed",
        ]
        assert titles(client, named) == ["By me"]
        assert titles(client, renamed) == ["mock: title Too early", "Too early", "Renamed"]
    with running_server(tmp_path / "state") as server, Client(server.url) as client:
        for key in ("named", "renamed"):
            client.sessions.open(key).run(TITLED)
        assert [client.sessions.get(key).title for key in ("named", "renamed")] == ["By me", "Renamed"]
        client.sessions.update("named", title="Again by me")
        assert client.sessions.get("named").title == "Again by me"
