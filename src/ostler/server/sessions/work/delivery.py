"""What a delivery says and is called, where the order leaves it open; and how the log shows it."""

import re

from ostler.base.logs import never_log
from ostler.server.sessions import drafts
from ostler.server.sessions.session import SessionCore
from ostler.wire.provisioning import DeliveryOrder, DeliveryResult
from ostler.wire.running import Draft
from ostler.wire.workspace_events import DeliveryCompletedData
from ostler.wire.workspaces import Deliver

_TITLE_LENGTH = 72
_LEFT_OUT = "A branch cannot hold changes of submodules; a patch can."
_ODD = re.compile(r"[^a-z0-9]+")


def delivery_order(session: SessionCore, wanted: Deliver, snapshot: str) -> DeliveryOrder:
    """The delivery of a snapshot with everything filled in."""
    state, record = session.state, session.record
    if state.workspace is None:
        raise AssertionError("the caller has seen the workspace")
    title = (wanted.title or state.title or "Changes by an agent").strip()[:_TITLE_LENGTH]
    repo = record.order.repo if record.order is not None else None
    credential = wanted.credential or (repo.credential if repo is not None else None)
    never_log(credential.token if credential is not None else None)
    body = wanted.body if wanted.body is not None else f"Made by {record.agent} in session {record.id}."
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
        credential=credential,
        forge=wanted.forge,
        api_url=wanted.api_url,
    )


def _branch(session: SessionCore, wanted: Deliver, title: str) -> str:
    if wanted.branch:
        return wanted.branch
    if wanted.mode == "branch" and wanted.target_branch:
        return wanted.target_branch
    words = _ODD.sub("-", title.lower()).strip("-")[:40].strip("-")
    return f"ostler/{words or 'changes'}-{session.record.id[-6:].lower()}"


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
    )


def delivery_drafts(done: DeliveryCompletedData) -> list[Draft]:
    """A delivery in the log, and what people must know about it."""
    if not done.left_out:
        return [drafts.delivery(done)]
    text = f"The changes in {', '.join(done.left_out)} are not delivered. {_LEFT_OUT}"
    return [drafts.delivery(done), drafts.warning(text, "submodule_left_out")]
