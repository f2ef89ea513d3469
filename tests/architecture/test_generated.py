"""What is generated from the code is up to date."""

import json
from collections.abc import Iterator
from difflib import unified_diff
from pathlib import Path

from tests.architecture.house import ROOT
from tools.generate import outputs

_TOLD = 40


def test_generated_files_are_fresh() -> None:
    stale = [line for name, text in outputs().items() for line in _difference(ROOT / name, text)]
    assert stale == [], "Run `make schema` and commit what it writes:\n" + "\n".join(stale[:_TOLD])


def _difference(file: Path, text: str) -> Iterator[str]:
    written = file.read_text() if file.is_file() else ""
    return unified_diff(written.splitlines(), text.splitlines(), str(file), "what the code says", lineterm="", n=1)


def test_no_two_types_of_the_wire_have_one_name() -> None:
    names = json.loads((ROOT / "schema" / "wire.json").read_text())["$defs"]
    assert [name for name in names if "." in name] == [], "Both are named by their modules, the order by chance."
