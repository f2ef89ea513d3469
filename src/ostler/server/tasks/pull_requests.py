"""What became of a session's pull request: asked of its forge, and written down if it is new."""

import asyncio

from msgspec.structs import replace

from ostler.base.errors import OstlerError, Unprocessable
from ostler.base.errors.runners import RunnerUnavailable
from ostler.base.logs import Log
from ostler.link.workspaces import Workspaces
from ostler.server.sessions import drafts
from ostler.server.sessions.log.state import SessionState
from ostler.server.sessions.session import SessionCore
from ostler.server.sessions.work.delivery import access_of, repo_of
from ostler.server.store.acting import deed
from ostler.wire.provisioning import PullRequestOrder
from ostler.wire.workspace_events import PullRequestData

log = Log(__name__)
_REASON_LENGTH = 300
_LOOK_SECONDS = 30.0


async def refresh(workspaces: Workspaces, session: SessionCore) -> bool:
    """Look at the pull request, and tell whether something is new.

    A forge that does not show it changes nothing but that; it is written down once.
    """
    if (known := pull_request_of(session.state)) is None or known.state == "merged":
        return False
    try:
        async with asyncio.timeout(_LOOK_SECONDS):
            found = await workspaces.pull_request(_order(session, known, merge=False))
    except TimeoutError:
        await _unseen(session, f"The forge did not answer within {_LOOK_SECONDS:.0f} seconds.")
        return False
    except RunnerUnavailable as error:  # which says nothing about the forge
        log.info("pull_request.not_looked_at", session_id=session.id, reason=str(error))
        return False
    except OstlerError as error:
        log.info("pull_request.not_seen", session_id=session.id, reason=str(error))
        await _unseen(session, str(error))
        return False
    if found == pull_request_of(session.state):
        return False
    await session.note([drafts.pull_request(found)])
    return True


async def _unseen(session: SessionCore, reason: str) -> None:
    known = pull_request_of(session.state)
    if known is None or known.unseen_since is not None:
        return
    unseen = replace(known, unseen_since=session.now(), unseen_because=reason[:_REASON_LENGTH])
    await session.note([drafts.pull_request(unseen)])


async def merge(workspaces: Workspaces, session: SessionCore) -> None:
    """Have the forge merge the pull request."""
    known = pull_request_of(session.state)
    if known is None:
        raise Unprocessable(reason="There is no pull request of this session. Deliver one first.")
    if session.state.is_delivery_outdated:
        raise Unprocessable(reason="The pull request lacks the newest changes. Deliver them first.")
    found = await workspaces.pull_request(_order(session, known, merge=known.state != "merged"))
    if found != pull_request_of(session.state):
        await session.note(deed(drafts.pull_request(found)))


def pull_request_of(state: SessionState) -> PullRequestData | None:
    """The last one, as its forge showed it last."""
    return state.delivery.pull_request if state.delivery is not None else None


def _order(session: SessionCore, known: PullRequestData, *, merge: bool) -> PullRequestOrder:
    repo, access = repo_of(session), access_of(session)
    return PullRequestOrder(
        url=(repo.url if repo is not None else None) or "",
        number=known.number,
        credential=access.credential,
        forge=access.forge,
        api_url=access.api_url,
        merge=merge,
    )
