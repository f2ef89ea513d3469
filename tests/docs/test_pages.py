"""The documentation holds together: links lead somewhere, every page can be found, blocks say what they are."""

from pathlib import Path

import pytest

from tests.docs.pages import ROOT, anchors, blocks, links, name, pages, spans

_LANGUAGES = {"console", "sh", "python", "json", "text", "toml", "http", "javascript", "ts"}
_STANDARDS = [
    *(f"https://www.rfc-editor.org/rfc/rfc{number}" for number in (2119, 8174, 8259, 7807, 9457)),
    "https://html.spec.whatwg.org/multipage/server-sent-events.html",
    "https://ai-sdk.dev/docs/ai-sdk-ui/stream-protocol",
]


def _broken(page: Path, link: str) -> bool:
    path, _, fragment = link.partition("#")
    target = (page.parent / path).resolve() if path else page
    return not target.exists() or bool(fragment and fragment not in anchors(target))


@pytest.mark.parametrize("page", pages(), ids=name)
def test_every_link_leads_somewhere(page: Path) -> None:
    inside = [link for link in links(page) if not link.startswith(("http://", "https://"))]
    assert [link for link in inside if _broken(page, link)] == []


@pytest.mark.parametrize("page", pages(), ids=name)
def test_every_block_says_its_language(page: Path) -> None:
    assert {block.language for block in blocks(page)} <= _LANGUAGES


@pytest.mark.parametrize("page", pages(), ids=name)
def test_no_code_has_spaces_at_its_ends(page: Path) -> None:
    assert [span for span in spans(page) if span != span.strip()] == []


def test_every_standard_that_is_followed_is_cited() -> None:
    cited = links(ROOT / "docs" / "explanation" / "standards.md")
    assert [link for link in _STANDARDS if link not in cited] == []


def test_every_page_is_reachable_from_the_index() -> None:
    found = {ROOT / "docs" / "README.md"}
    waiting = list(found)
    while waiting:
        page = waiting.pop()
        targets = {(page.parent / link.partition("#")[0]).resolve() for link in links(page) if "://" not in link}
        fresh = {target for target in targets if target in pages()} - found
        found |= fresh
        waiting += fresh
    assert [name(page) for page in pages() if page.is_relative_to(ROOT / "docs") and page not in found] == []


def test_the_instructions_for_agents_stay_short() -> None:
    assert len((ROOT / "AGENTS.md").read_text().splitlines()) <= 120
