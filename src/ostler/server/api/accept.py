"""Which of the forms an operation can answer in a client takes best.

Litestar has a parser too, but takes `q=0` for a wish and lets `*/*` beat what a more exact range says.
"""

from collections.abc import Sequence
from typing import Any

from litestar import Request

from ostler.base.errors import NotAcceptable

JSON, SSE = "application/json", "text/event-stream"


def form_for(request: Request[Any, Any, Any], *offered: str) -> str:
    """The offered media type that this request takes best; refused if it takes none."""
    return preferred(",".join(request.headers.getall("accept", ())) or None, offered)


def wants_stream(request: Request[Any, Any, Any]) -> bool:
    """Whether an event stream is taken better than a document, which everybody else gets."""
    try:
        return form_for(request, JSON, SSE) == SSE
    except NotAcceptable:
        return False


def preferred(accept: str | None, offered: Sequence[str]) -> str:
    """The offered media type with the highest quality; the first offered one if the client does not care."""
    ranges = _ranges(accept or "*/*")
    rated = [(_quality(media, ranges), -index, media) for index, media in enumerate(offered)]
    (quality, _), _, best = max(rated)
    if quality <= 0:
        raise NotAcceptable(given=accept, possible=" or ".join(offered))
    return best


def _ranges(accept: str) -> list[tuple[str, float]]:
    return [_range(part) for part in accept.split(",") if part.strip()] or [("*/*", 1.0)]


def _range(part: str) -> tuple[str, float]:
    media, *parameters = (piece.strip().lower() for piece in part.split(";"))
    given = next((value[2:] for value in parameters if value.startswith("q=")), "1")
    try:
        quality = float(given)
    except ValueError:
        return media, 0.0
    return media, quality if 0 <= quality <= 1 else 0.0


def _quality(media: str, ranges: list[tuple[str, float]]) -> tuple[float, int]:
    """What the most exact of the ranges says about a media type; a range named earlier wins a tie."""
    kind = media.partition("/")[0]
    for wanted in (media, f"{kind}/*", "*/*"):
        for place, (found, quality) in enumerate(ranges):
            if found == wanted:
                return quality, -place
    return 0.0, 0
