"""What is left of a server that was killed: turns without an end, which are closed honestly at the next start."""

from ostler.server.sessions import drafts
from ostler.server.sessions.state import SessionState
from ostler.server.sessions.transcript import Transcript
from ostler.wire.events import ErrorData
from ostler.wire.items import Item
from ostler.wire.running import Draft

_REASON = "server_restarted"


def needs_recovery(state: SessionState) -> bool:
    """Whether a session was in the middle of something."""
    return state.turn is not None or bool(state.asks) or state.status in {"pausing", "resuming", "stopping"}


def recovery_drafts(state: SessionState, transcript: Transcript) -> list[Draft]:
    """The events that bring an interrupted session to rest; the agent's process died with the server."""
    return [*_closed_turn(state, transcript.open_items()), *_settled_status(state)]


def _closed_turn(state: SessionState, open_items: list[Item]) -> list[Draft]:
    asks = [drafts.ask_dropped(ask, _REASON) for ask in state.asks]
    if state.turn is None:
        return asks
    message = "The server ended during this turn and the agent with it. Send the prompt again to go on."
    error = Draft("error", ErrorData(message=message, code=_REASON), source="daemon", synthetic=True)
    items = [drafts.item_failed(item) for item in open_items]
    return [*items, *asks, error, drafts.turn_ended(state.turn.turn_id, "failed", _REASON)]


def _settled_status(state: SessionState) -> list[Draft]:
    match state.status:
        case "pausing":
            return [drafts.status("paused", _REASON)]
        case "resuming":
            return [drafts.status("running", _REASON)]
        case "stopping":
            return [drafts.status("stopped", _REASON), drafts.ended_by_us()]
        case _:
            return []
