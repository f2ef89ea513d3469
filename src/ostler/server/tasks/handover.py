"""Delivery that a client asks for: of what the workspace holds now, between two turns or after the end."""

from ostler.base.errors import SessionBusy
from ostler.link.workspaces import Workspaces
from ostler.server.sessions import drafts
from ostler.server.sessions.live import LiveSession
from ostler.server.tasks.delivery import delivered, delivery_order, told
from ostler.server.tasks.pipeline import kept
from ostler.server.tasks.states import workspace_of
from ostler.wire.workspace_events import DeliveryCompletedData
from ostler.wire.workspaces import Deliver

_NOTE = "delivery"


async def hand_over(workspaces: Workspaces, live: LiveSession, wanted: Deliver) -> DeliveryCompletedData:
    """Keep the files as they are, deliver that, and write it down, also in the log of a session that is over."""
    workspace_of(live)
    await live.chores.do()
    result = await live.chores.alone(lambda: _hand_over(workspaces, live, wanted))
    await live.turns.go_on()
    return result


async def _hand_over(workspaces: Workspaces, live: LiveSession, wanted: Deliver) -> DeliveryCompletedData:
    if (turn := live.state.turn) is not None:
        raise SessionBusy(session=live.id, turn=turn.turn_id)
    workspace = workspace_of(live)
    frozen = await workspaces.snapshot(workspace, _NOTE, agent=live.record.agent, home=live.home)
    order = delivery_order(live, wanted, frozen.id)
    done = delivered(live.id, order, await workspaces.deliver(order))
    snapshot = kept(live, frozen, live.state.turn_count, _NOTE)
    await live.note([drafts.snapshot(snapshot), *told(done)])
    return done
