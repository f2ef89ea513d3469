"""What is generated from the code is up to date."""

import pytest

from tests.architecture.house import ROOT
from tools.generate import outputs

OUTPUTS = outputs()


@pytest.mark.parametrize(("name", "text"), OUTPUTS.items(), ids=OUTPUTS)
def test_a_generated_file_is_fresh(name: str, text: str) -> None:
    is_fresh = (ROOT / name).is_file() and (ROOT / name).read_text() == text
    assert is_fresh, f"{name} is out of date; run `make schema` and commit what it writes."
