"""What is generated from the code is up to date."""

import json

from tests.architecture.house import ROOT
from tools.generate import outputs


def test_generated_files_are_fresh() -> None:
    stale = [
        name for name, text in outputs().items() if not (ROOT / name).is_file() or (ROOT / name).read_text() != text
    ]
    assert stale == [], "Run `make schema` and commit what it writes."


def test_no_two_types_of_the_wire_have_one_name() -> None:
    names = json.loads((ROOT / "schema" / "wire.json").read_text())["$defs"]
    assert [name for name in names if "." in name] == [], "Both are named by their modules, the order by chance."
