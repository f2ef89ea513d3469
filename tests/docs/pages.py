"""The pages of the documentation, cut into what the tests look at."""

import re
from functools import cache
from pathlib import Path
from typing import NamedTuple

from tools.reference.markdown import anchor

ROOT = Path(__file__).resolve().parents[2]
_FENCE = re.compile(r"^ *```(?P<language>[^\n`]*)\n(?P<body>.*?)^ *```$", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"(?<!!)\[[^\]]*\]\((?P<target>[^)\s]+)\)")
_SPAN = re.compile(r"(?<!`)(?P<ticks>`+)(?P<code>(?:(?!\n\n).)+?)(?<!`)(?P=ticks)(?!`)", re.DOTALL)
_HEADING = re.compile(r"^#{1,6} (?P<title>.+)$", re.MULTILINE)


class Block(NamedTuple):
    """A fenced block."""

    language: str
    body: str


@cache
def pages() -> tuple[Path, ...]:
    """Every page a reader can open."""
    return tuple(sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]))


def name(page: Path) -> str:
    """How a test calls a page."""
    return str(page.relative_to(ROOT))


@cache
def blocks(page: Path) -> tuple[Block, ...]:
    """The fenced blocks of a page."""
    return tuple(Block(found["language"].strip(), found["body"]) for found in _FENCE.finditer(page.read_text()))


@cache
def spans(page: Path) -> tuple[str, ...]:
    """What stands between backticks in the prose of a page."""
    return tuple(found["code"] for found in _SPAN.finditer(_prose(page)))


@cache
def links(page: Path) -> tuple[str, ...]:
    """Where the links of a page go."""
    return tuple(found["target"] for found in _LINK.finditer(_prose(page)))


@cache
def anchors(page: Path) -> frozenset[str]:
    """The fragments that links to a page may have."""
    return frozenset(anchor(found["title"].replace("`", "")) for found in _HEADING.finditer(_prose(page)))


def _prose(page: Path) -> str:
    return _FENCE.sub("", page.read_text())
