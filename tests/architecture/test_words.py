"""One word per concept: names that a stranger would not guess stay out of the code."""

import re
import tokenize
from functools import cache
from pathlib import Path

from tests.architecture.house import RETIRED, RETIRED_ELSEWHERE, SOURCE, modules

_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_WORDS = re.compile(rf"_({'|'.join(RETIRED)})_")


@cache
def _names(file: Path) -> frozenset[str]:
    """Every identifier in a file, and in its path."""
    with file.open("rb") as content:
        found = {token.string for token in tokenize.tokenize(content.readline) if token.type == tokenize.NAME}
    return frozenset(found | set(file.relative_to(SOURCE).with_suffix("").parts))


@cache
def _retired(name: str) -> str | None:
    found = _WORDS.search(f"_{_HUMP.sub('_', name).lower()}_")
    return found[1] if found else None


def test_no_name_has_a_retired_word() -> None:
    found = {(module, name): _retired(name) for module, file in modules().items() for name in _names(file)}
    wrong = {where: f"say {RETIRED[word]}" for where, word in found.items() if word is not None}
    assert {where: instead for where, instead in wrong.items() if where[1] not in RETIRED_ELSEWHERE} == {}


def test_exceptions_are_names_that_are_in_use() -> None:
    used = frozenset[str]().union(*(_names(file) for file in modules().values()))
    assert [name for name in RETIRED_ELSEWHERE if name not in used or _retired(name) is None] == []
