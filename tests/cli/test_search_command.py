"""`ostler search` in the hands of a person."""

from ostler.client import Client
from tests.cli.conftest import Ostler
from tests.support.patience import wait_until
from tests.support.serving import RunningServer


def test_what_was_said_is_shown_with_its_session(server: RunningServer, ostler: Ostler) -> None:
    with Client(server.url) as client:
        session = client.sessions.create("mock", title="Birds")
        session.run("mock: say The kakapo climbs.")
        wait_until(lambda: client.sessions.search("kakapo").is_complete, what="a complete index")
    shown = ostler("search", "kakapo", "clim", "--from", "agent")
    assert (shown.returncode, shown.stderr) == (0, "")
    shown_id, _, rest = shown.stdout.splitlines()[0].partition("  ")
    assert (session.id.startswith(shown_id), "Birds" in rest) == (True, True)
    assert shown.stdout.splitlines()[0].endswith("  mock, agent  Birds")
    assert shown.stdout.splitlines()[1].strip() == "The kakapo climbs."
    assert ostler("sessions", "search", "kaka", "--session", session.key, "--json").stdout.count('"excerpt"') == 2
    assert ostler("search", "dodo").stdout == "Nothing was found.\n"
    first = ostler("search", "kakapo", "--limit", "1").stdout.splitlines()
    number = first[-1].rpartition(" ")[2]
    assert ostler("search", "kakapo", "--limit", "1", "--before", number).stdout.splitlines()[0] != first[0]


def test_what_cannot_be_looked_for_is_one_line(ostler: Ostler) -> None:
    refused = ostler("search", "?!")
    assert refused.returncode != 0
    assert refused.stderr.count("\n") == 1
    assert "no word to look for" in refused.stderr
