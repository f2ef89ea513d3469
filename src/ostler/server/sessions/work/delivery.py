"""What a delivery says and is called, where the order leaves it open; and how the log shows it."""

import re
from urllib.parse import unquote, urlsplit

import msgspec

from ostler.base.logs import never_log
from ostler.server.sessions import drafts
from ostler.server.sessions.session import SessionCore
from ostler.server.store.protocol import Store
from ostler.wire.delivery import DeliveryAccess
from ostler.wire.provisioning import DeliveryOrder, DeliveryResult
from ostler.wire.running import Draft
from ostler.wire.workspace_events import DeliveryCompletedData, PullRequestData
from ostler.wire.workspaces import Deliver, Repo

_TITLE_LENGTH = 72
_LEFT_OUT = "A branch cannot hold changes of submodules; a patch can."
_ODD = re.compile(r"[^a-z0-9]+")
_BRANCH_WORDS, _BRANCH_LENGTH = 5, 40


def delivery_order(session: SessionCore, wanted: Deliver, snapshot: str) -> DeliveryOrder:
    """The delivery of a snapshot with everything filled in."""
    state = session.state
    if state.workspace is None:
        raise AssertionError("the caller has seen the workspace")
    title = (wanted.title or state.title or "Changes by an agent").strip()[:_TITLE_LENGTH]
    known = access_of(session, wanted)
    never_log(known.credential.token if known.credential is not None else None)
    body = wanted.body if wanted.body is not None else made_by(session)
    return DeliveryOrder(
        workspace=state.workspace.workspace_id,
        snapshot=snapshot,
        mode=wanted.mode,
        branch=_branch(session, wanted, title),
        title=title,
        body=body,
        message=wanted.message or f"{title}\n\n{body}",
        target=wanted.target_branch,
        draft=wanted.draft,
        credential=known.credential,
        forge=known.forge,
        api_url=known.api_url,
        folder=folder_of(repo_of(session)),
    )


def made_by(session: SessionCore) -> str:
    """Where a result comes from, for people who find it elsewhere."""
    return f"Made by {session.record.agent} in session {session.record.id}."


def repo_of(session: SessionCore) -> Repo | None:
    """What the workspace of a session was made from."""
    order = session.record.order
    return order.repo if order is not None else None


def folder_of(repo: Repo | None) -> str | None:
    """The checkout or the folder of the runner's machine that a workspace was made from."""
    if repo is None or repo.mode in {"folder", "checkout"}:
        return repo.path if repo is not None else None
    url = repo.url or ""
    if url.startswith("file://"):
        return unquote(urlsplit(url).path)
    return url if url.startswith("/") else None


def access_of(session: SessionCore, wanted: Deliver | None = None) -> DeliveryAccess:
    """What the forge is entered with: as the order says, or somebody said before, or as the repository is."""
    repo, task, nothing = repo_of(session), session.record.task, Deliver(mode="patch")
    ordered = (task.delivery if task is not None else None) or nothing
    own, known = wanted or nothing, session.record.delivery or DeliveryAccess()
    usual = ordered.credential or (repo.credential if repo is not None else None)
    return DeliveryAccess(
        credential=own.credential or known.credential or usual,
        forge=own.forge or known.forge or ordered.forge,
        api_url=own.api_url or known.api_url or ordered.api_url,
    )


async def remember_access(store: Store, session: SessionCore, wanted: Deliver) -> None:
    """Keep what a delivery entered the forge with for the next one."""
    if wanted.credential is None and wanted.forge is None and wanted.api_url is None:
        return
    record = session.record
    spec = msgspec.structs.replace(record.spec, delivery=access_of(session, wanted))
    await store.update_spec(record.id, record.epoch, spec)
    session.rewrite(spec=spec)


def branch_words(title: str) -> str:
    """A title as a short name of a branch."""
    words = _ODD.sub("-", title.lower()).strip("-").split("-")[:_BRANCH_WORDS]
    while len(words) > 1 and len("-".join(words)) > _BRANCH_LENGTH:
        words.pop()
    return f"ostler/{'-'.join(words)[:_BRANCH_LENGTH] or 'changes'}"


def _branch(session: SessionCore, wanted: Deliver, title: str) -> str:
    if wanted.branch:
        return wanted.branch
    if wanted.mode == "branch" and wanted.target_branch:
        return wanted.target_branch
    return f"{branch_words(title)}-{session.record.id[-6:].lower()}"


def delivered(session_id: str, order: DeliveryOrder, result: DeliveryResult) -> DeliveryCompletedData:
    """What the log tells; nothing in it is secret."""
    patch = f"/api/v1/sessions/{session_id}/patch?new={order.snapshot}" if order.mode == "patch" else None
    return DeliveryCompletedData(
        mode=order.mode,
        snapshot_id=order.snapshot,
        url=result.url or patch,
        branch=result.branch,
        commit=result.commit,
        target=result.target,
        number=result.number,
        created=result.created,
        size=result.size,
        left_out=result.left_out,
        too_large=result.too_large,
        pull_request=_opened(order, result),
    )


def _opened(order: DeliveryOrder, result: DeliveryResult) -> PullRequestData | None:
    """A pull request as it is when it has just been opened; the forge is asked for more later."""
    if result.number is None or result.url is None:
        return None
    return PullRequestData(
        number=result.number,
        url=result.url,
        branch=result.branch or order.branch,
        target=result.target or "",
        state="draft" if order.draft and result.created else "open",
    )


def delivery_drafts(done: DeliveryCompletedData) -> list[Draft]:
    """A delivery in the log, and what people must know about it."""
    if not done.left_out:
        return [drafts.delivery(done)]
    text = f"The changes in {', '.join(done.left_out)} are not delivered. {_LEFT_OUT}"
    return [drafts.delivery(done), drafts.warning(text, "submodule_left_out")]
