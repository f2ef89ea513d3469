"""What is generated from the code is up to date."""

from tests.architecture.house import ROOT
from tools.generate import outputs


def test_generated_files_are_fresh() -> None:
    stale = [
        name for name, text in outputs().items() if not (ROOT / name).is_file() or (ROOT / name).read_text() != text
    ]
    assert stale == [], "Run `make schema` and commit what it writes."
