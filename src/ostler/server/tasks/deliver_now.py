"""Delivery that a client asks for: of what the workspace holds now, between two turns or after the end."""

from collections.abc import Callable
from typing import Literal

from msgspec.structs import replace

from ostler.base.errors import SessionBusy
from ostler.link.workspaces import Workspaces
from ostler.server.runners.steps import SecretUse
from ostler.server.sessions import drafts
from ostler.server.sessions.live import LiveSession
from ostler.server.sessions.secrets import used_by
from ostler.server.sessions.service import Sessions
from ostler.server.sessions.session import SessionCore
from ostler.server.sessions.work.chores import REQUEST_SECONDS
from ostler.server.sessions.work.delivery import access_of, delivered, delivery_drafts, delivery_order, remember_access
from ostler.server.sessions.work.own_steps import own_steps
from ostler.server.sessions.work.pipeline import changed_beside, snapshot_data
from ostler.server.store.acting import deed
from ostler.server.tasks.delivery_plan import DeliveryPlans
from ostler.server.tasks.states import workspace_of
from ostler.wire.delivery import DeliverSession
from ostler.wire.workspace_events import DeliveryCompletedData
from ostler.wire.workspaces import Deliver

_NOTE = "delivery"
_WORDS: tuple[Literal["title", "body"], ...] = ("title", "body")


async def deliver_now(
    sessions: Sessions,
    workspaces: Workspaces,
    live: LiveSession,
    wanted: DeliverSession,
    used: Callable[[SecretUse], None],
) -> DeliveryCompletedData:
    """Keep the files as they are, deliver that, and write it down, also in the log of a session that is over.

    `used` hears of the credential that is used for it.
    """
    session = live.core
    workspace_of(session)
    _refuse_if_busy(session)
    order = await DeliveryPlans(workspaces, session).filled(wanted)
    new_words = tuple(name for name in _WORDS if getattr(wanted, name))
    await live.chores.do(patience=REQUEST_SECONDS)
    if access_of(session, order).credential is not None:
        used(used_by(session.record, ["delivery.credential"]))
    result = await live.chores.alone(lambda: _deliver(workspaces, session, order, new_words), patience=REQUEST_SECONDS)
    await remember_access(sessions.store, session, order)
    await live.turns.go_on()
    return result


async def _deliver(
    workspaces: Workspaces,
    session: SessionCore,
    wanted: Deliver,
    new_words: tuple[Literal["title", "body"], ...],
) -> DeliveryCompletedData:
    _refuse_if_busy(session)
    workspace = workspace_of(session)
    changed_by = changed_beside(session)
    steps = await own_steps(workspaces, session, wanted.paths)
    frozen = await workspaces.snapshot(
        workspace, _NOTE, agent=session.record.agent, session=session.id, changed_by=changed_by
    )
    order = replace(delivery_order(session, wanted, frozen.id), new_words=new_words, steps=steps)
    done = delivered(session.id, order, await workspaces.deliver(order))
    snapshot = snapshot_data(session, frozen, session.state.turn_count, _NOTE, changed_by=changed_by)
    await session.note(deed(drafts.snapshot(snapshot), *delivery_drafts(done)))
    return done


def _refuse_if_busy(session: SessionCore) -> None:
    if (turn := session.state.turn) is not None:
        raise SessionBusy(session=session.id, turn=turn.turn_id)
