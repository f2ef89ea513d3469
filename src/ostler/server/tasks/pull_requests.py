"""What became of a session's pull request: asked of its forge when somebody looks, and written down if it is new."""

from ostler.base.errors import OstlerError, Unprocessable
from ostler.base.logs import Log
from ostler.link.workspaces import Workspaces
from ostler.server.sessions import drafts
from ostler.server.sessions.acting import deed
from ostler.server.sessions.live import LiveSession
from ostler.server.sessions.work.delivery import access_of, repo_of
from ostler.wire.provisioning import PullRequestOrder
from ostler.wire.workspace_events import PullRequestData

log = Log(__name__)


async def refresh(workspaces: Workspaces, live: LiveSession) -> None:
    """Look at the pull request; a forge that does not answer changes nothing."""
    if (known := _known(live)) is None or known.state == "merged":
        return
    try:
        found = await workspaces.pull_request(_order(live, known, merge=False))
    except OstlerError as error:
        log.info("pull_request.not_seen", session_id=live.id, reason=str(error))
        return
    if found != _known(live):
        await live.note([drafts.pull_request(found)])


async def merge(workspaces: Workspaces, live: LiveSession) -> None:
    """Have the forge merge the pull request."""
    known = _known(live)
    if known is None:
        raise Unprocessable(reason="There is no pull request of this session. Deliver one first.")
    if live.state.is_delivery_outdated:
        raise Unprocessable(reason="The pull request lacks the newest changes. Deliver them first.")
    found = await workspaces.pull_request(_order(live, known, merge=known.state != "merged"))
    if found != _known(live):
        await live.note(deed(drafts.pull_request(found)))


def _known(live: LiveSession) -> PullRequestData | None:
    return live.state.delivery.pull_request if live.state.delivery is not None else None


def _order(live: LiveSession, known: PullRequestData, *, merge: bool) -> PullRequestOrder:
    repo, access = repo_of(live), access_of(live)
    return PullRequestOrder(
        url=(repo.url if repo is not None else None) or "",
        number=known.number,
        credential=access.credential,
        forge=access.forge,
        api_url=access.api_url,
        merge=merge,
    )
