"""`--json` is the same everywhere: every command has it, and gives one JSON object and nothing else."""

import json
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from ostler.cli import root
from ostler.client import Client
from ostler.wire.workspaces import Repo
from tests.cli.conftest import Ostler
from tests.support.places import make_repository
from tests.support.serving import RunningServer

WITHOUT = {
    "serve": "runs until it is ended",
    "runner": "runs until it is ended",
    "follower": "runs until it is ended",
    "connect dial": "passes bytes on",
    "connect receive": "reads an archive",
    "connect register": "runs until it is ended",
    "connect serve": "runs until it is ended",
    "acp": "speaks a protocol",
    "agent tools": "speaks a protocol",
    "api": "prints what the operation answers",
    "audit export": "prints lines of JSON",
    "completion": "prints a program",
}


def commands(found: click.Command, *words: str) -> Iterator[tuple[str, click.Command]]:
    """Every command below this one, by its words."""
    if not isinstance(found, click.Group):
        yield " ".join(words), found
        return
    context = click.Context(found)
    for name in found.list_commands(context):
        below = found.get_command(context, name)
        assert below is not None
        yield from commands(below, *words, name)


def takes_json(command: click.Command) -> bool:
    return any("--json" in option.opts and option.help for option in command.params if isinstance(option, click.Option))


def test_every_command_takes_json_but_for_a_few_with_a_reason() -> None:
    assert {words for words, command in commands(root) if not takes_json(command)} == set(WITHOUT)


@pytest.fixture
def session(server: RunningServer, tmp_path: Path) -> Iterator[str]:
    """One with files and a prompt that waits."""
    repository = make_repository(tmp_path / "project")
    with Client(server.url) as client:
        made = client.sessions.create("mock", repo=Repo(mode="git", url=str(repository), branch="main"))
        made.run("mock: write notes.txt hello")
        made.start("mock: wait 600")
        made.send("two")
        yield made.id
        if made.id in {each.id for each in client.sessions.list(per_page=100).items}:
            client.sessions.delete(made.id)


def test_what_has_no_answer_of_its_own_still_gives_an_object(ostler: Ostler, session: str) -> None:
    def given(*words: str) -> object:
        done = ostler(*words, "--json")
        assert (done.returncode, done.stderr) == (0, "")
        return json.loads(done.stdout)

    assert given("files", "read", session, "notes.txt") == {"text": "hello", "size": 5}
    assert given("files", "read", session, "notes.txt", "-o", "here.txt") == {"output": "here.txt", "size": 5}
    assert given("files", "remove", session, "notes.txt") == {"removed": "notes.txt"}
    queue = given("sessions", "queue", session)
    assert isinstance(queue, dict)
    prompt = queue["entries"][0]["promptId"]
    assert given("sessions", "unqueue", session, prompt) == {"removed": prompt}
    assert given("sessions", "clear-queue", session) == {"entries": []}
    assert given("sessions", "delete", session) == {"removed": session}


@pytest.mark.parametrize(
    ("words", "names"),
    [
        ("agents logout mock", {"agent", "state"}),
        ("system metrics", {"text", "size"}),
        ("system openapi", {"openapi", "paths"}),
        ("system schema wire.json", {"$defs"}),
        ("doctor", {"ok", "checks"}),
    ],
)
def test_others_give_what_they_found(ostler: Ostler, words: str, names: set[str]) -> None:
    found = json.loads(ostler(*words.split(), "--json").stdout)
    assert names <= set(found)
