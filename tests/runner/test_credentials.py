"""Credentials of a made-up host: found in variables and files, never guessed, never shown by accident."""

import json
from pathlib import Path

import pytest

from ostler.agents.adapter import Credential
from ostler.runner.runtimes.credentials import Found, find_credentials

KEY = Credential(
    name="KEY", env=("KEY", "OLD_KEY"), files=((".agent/auth.json", "tokens.access"), (".more.json", "key"))
)


def write(home: Path, file: str, document: object) -> None:
    path = home / file
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(document if isinstance(document, str) else json.dumps(document))


def test_a_variable_beats_a_file(tmp_path: Path) -> None:
    write(tmp_path, ".more.json", {"key": "from-file"})
    found = find_credentials([KEY], environ={"OLD_KEY": "from-variable"}, home=tmp_path)
    assert found == (Found(name="KEY", source="variable OLD_KEY", value="from-variable"),)


def test_a_file_is_read_at_its_key(tmp_path: Path) -> None:
    write(tmp_path, ".agent/auth.json", {"tokens": {"access": " abc\n"}})
    found = find_credentials([KEY], environ={"KEY": ""}, home=tmp_path)
    assert found == (Found(name="KEY", source="file ~/.agent/auth.json", value="abc"),)


@pytest.mark.parametrize(
    "document", ["not json", {}, {"tokens": None}, {"tokens": {"access": 5}}, {"tokens": {"access": ""}}, [1], "\x00"]
)
def test_a_file_of_another_shape_holds_nothing(tmp_path: Path, document: object) -> None:
    write(tmp_path, ".agent/auth.json", document)
    (tmp_path / ".more.json").mkdir()
    assert find_credentials([KEY], environ={}, home=tmp_path) == ()


def test_without_a_home_only_variables_count() -> None:
    assert find_credentials([KEY], environ={}, home=None) == ()


def test_a_credential_does_not_show_its_value() -> None:
    assert "secret" not in repr(Found(name="KEY", source="variable KEY", value="secret"))
