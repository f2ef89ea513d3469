"""Search in everything that was said."""

from typing import Annotated

from litestar import get
from litestar.params import Parameter, QueryParameter
from msgspec.structs import replace

from ostler.server.api.services import Services
from ostler.server.runners.agents import full_name
from ostler.server.search.asking import SPEAKERS, wanted_of
from ostler.server.search.excerpts import excerpt_of
from ostler.server.store.records import SessionName
from ostler.server.store.search import Found, Wanted
from ostler.wire.search import SearchHit, SearchResults, Speaker

_TAGS = ["sessions"]
_MOST_TEXT = 1000
_ABOUT = (
    "Words, all of which must be there; the last may be the beginning of one. Words in quotes stand beside each other. "
    "`agent:`, `session:` and `from:` filter as the parameters do."
)


@get("/search", operation_id="sessions.search", tags=_TAGS, role="viewer")
async def search(
    services: Services,
    project: str,
    q: Annotated[str, Parameter(min_length=1, max_length=_MOST_TEXT, description=_ABOUT)],
    agent: Annotated[str | None, Parameter(description="Only in sessions of this agent.")] = None,
    session: Annotated[str | None, Parameter(description="Only in this session, by its id or key.")] = None,
    speaker: Annotated[Speaker | None, QueryParameter(name="from", description="Only what was said by these.")] = None,
    limit: Annotated[int, Parameter(ge=1, le=100)] = 30,
    before: Annotated[int | None, Parameter(ge=1, le=2**53, description="`nextBefore` of the page before.")] = None,
) -> SearchResults:
    """Everything said in all sessions that has these words, the newest first: messages, thoughts, tools and results."""
    asked = wanted_of(q, project=project, limit=limit + 1, before=before, agent=agent, session=session, speaker=speaker)
    wanted = replace(
        asked,
        agent=full_name(services.runners, asked.agent),
        session=(await services.sessions.registry.find(project, asked.session)).id if asked.session else None,
    )
    found, names = await services.search.find(wanted)
    page = found[:limit]
    has_more = len(found) > limit
    return SearchResults(
        items=tuple(_hit(each, names[each.session], wanted) for each in page),
        has_more=has_more,
        next_before=page[-1].id if has_more else None,
        is_complete=not services.search.is_behind,
    )


def _hit(found: Found, name: SessionName, wanted: Wanted) -> SearchHit:
    excerpt = excerpt_of(found.text, wanted.phrases)
    return SearchHit(
        session_id=found.session,
        session_key=name.key,
        title=name.title,
        agent=found.agent,
        speaker=SPEAKERS[found.role],
        sequence=found.first,
        time=found.time,
        excerpt=excerpt.text,
        marks=excerpt.marks,
    )


HANDLERS = (search,)
