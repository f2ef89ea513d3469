"""The commands in the guides of templates, schedules, triggers and webhooks do something, one after the other."""

import json
import re
import shlex
from pathlib import Path

import pytest

from tests.cli.conftest import Ostler
from tests.support.places import git
from tests.support.serving import RunningServer

GUIDES = Path(__file__).parents[2] / "docs" / "guides"
BLOCK = re.compile(r"^```(sh|toml)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks(guide: str, language: str) -> list[str]:
    return [found[1] for found in BLOCK.findall((GUIDES / f"{guide}.md").read_text()) if found[0] == language]


def commands(guide: str) -> list[list[str]]:
    lines = [line for block in blocks(guide, "sh") for line in block.splitlines() if line.startswith("ostler ")]
    return [shlex.split(line, comments=True)[1:] for line in lines]


def lay_out(folder: Path) -> None:
    """The folder that the guide of templates shows, as a git repository."""
    folder.mkdir()
    for block in blocks("templates", "toml"):
        name, _, text = block.removeprefix("# ").partition("\n")
        (folder / name).write_text(text)
    (folder / "AGENTS.md").write_text("Be kind.\n")
    git(folder, "init", "-q")
    git(folder, "add", ".")
    git(folder, "commit", "-qm", "An agent")


@pytest.mark.lane("cli")
def test_every_command_of_the_guides_is_taken(ostler: Ostler, tmp_path: Path, server: RunningServer) -> None:
    lay_out(tmp_path / "my-agent")
    for guide in ("templates", "schedules", "triggers", "webhooks"):
        placeholders = {"https://example.com/hook": f"{server.url}/hook"}
        for words in commands(guide):
            done = ostler(*(placeholders.get(word, word) for word in words))
            assert done.returncode == 0, f"{words}\n{done.stdout}{done.stderr}"
            if words[:2] == ["webhooks", "create"]:
                listed = json.loads(ostler("webhooks", "list", "--json").stdout)["items"]
                placeholders["WEBHOOK"] = listed[-1]["id"]
            elif words[:2] == ["webhooks", "test"]:
                listed = json.loads(ostler("webhooks", "deliveries", placeholders["WEBHOOK"], "--json").stdout)["items"]
                placeholders["CALL"] = listed[0]["id"]
