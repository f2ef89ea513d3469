"""What a turn of Copilot has shown so far: talk, open asks, tokens, and whether it went wrong."""

from collections import deque
from contextlib import suppress

import msgspec

from ostler.agents import say
from ostler.agents.adapter import TurnDone
from ostler.agents.copilot import asks, frames
from ostler.agents.copilot.talk import Talk
from ostler.wire.events import UsageUpdatedData
from ostler.wire.running import Draft

_CODES = {
    "authentication": "auth",
    "authorization": "auth",
    "rate_limit": "rate_limit",
    "quota": "quota",
    "context_limit": "context_limit",
}


class Turn:
    """State that the events change; `todos_changed` and the approvals wait for the translator to send something."""

    def __init__(self, start: int, *, bypass: bool) -> None:
        self._start = start
        self._bypass = bypass
        self.talk = Talk(start)
        self.asks: dict[str, asks.Ask] = {}
        self.todos_changed = False
        self._approvals: list[str] = []
        self._askers: deque[tuple[str, str | None]] = deque(maxlen=100)
        self._usage = UsageUpdatedData()
        self._provider_message: str | None = None
        self._failed: str | None = None

    def begin(self) -> None:
        """A prompt goes out."""
        self.talk.begin_turn()
        self._usage = UsageUpdatedData(context_used=self._usage.context_used, context_window=self._usage.context_window)
        self._provider_message = None
        self._failed = None

    def end(self, idle: frames.Idle) -> TurnDone:
        """The agent has nothing more to do."""
        if idle.aborted:
            return TurnDone(outcome="interrupted", stop_reason="aborted")
        if self._failed is not None:
            return TurnDone(outcome="failed", stop_reason=self._failed)
        return TurnDone(outcome="completed")

    # Asks

    def request(self, asked: frames.PermissionRequested) -> list[Draft]:
        """A permission is asked for; with bypass it is given at once."""
        if asked.resolved_by_hook:
            return []
        if self._bypass:
            self._approvals.append(asked.request_id)
            return []
        native = asked.permission_request.tool_call_id
        ask_id = f"per_{self._start}_{asked.request_id}"
        ask = asks.permission(ask_id, asked, self.talk.call(native), self.talk.item_of(native))
        self.asks[ask_id] = ask
        return [ask.requested]

    def settle(self, done: frames.PermissionCompleted) -> list[Draft]:
        """A permission is decided; if we have not done that, Copilot has."""
        ask = self.asks.pop(f"per_{self._start}_{done.request_id}", None)
        return [] if ask is None else [asks.settled(ask, allowed=done.result.kind.startswith("approved"))]

    def take_approvals(self) -> list[str]:
        """The permissions to give without asking, once."""
        approvals, self._approvals = self._approvals, []
        return approvals

    def expect(self, question: str, call: str | None) -> None:
        """A question of this tool call comes next."""
        self._askers.append((question, self.talk.item_of(call)))

    def asker(self, question: str) -> str | None:
        """The item that a question belongs to."""
        for known in self._askers:
            if known[0] == question:
                self._askers.remove(known)
                return known[1]
        return None

    # Tokens

    def count(self, usage: frames.Usage) -> Draft:
        """A model call is over; all calls of a turn add up, those of sub-agents too."""
        so_far = self._usage
        self._usage = msgspec.structs.replace(
            so_far,
            input_tokens=_sum(so_far.input_tokens, usage.input_tokens),
            output_tokens=_sum(so_far.output_tokens, usage.output_tokens),
            cached_input_tokens=_sum(so_far.cached_input_tokens, usage.cache_read_tokens),
            reasoning_tokens=_sum(so_far.reasoning_tokens, usage.reasoning_tokens),
        )
        return Draft("usage.updated", self._usage)

    def fill(self, context: frames.ContextUse) -> None:
        """The context is this full now."""
        used, window = int(context.current_tokens), int(context.token_limit)
        self._usage = msgspec.structs.replace(self._usage, context_used=used, context_window=window)

    # Errors

    def hear(self, failure: frames.CallFailure) -> None:
        """A model call failed; the error that may follow does not always say why."""
        if failure.error_message is None:
            return
        answer: frames.ProviderError | str = failure.error_message
        with suppress(msgspec.DecodeError):
            answer = msgspec.json.decode(failure.error_message, type=frames.ProviderError | str)
        self._provider_message = answer if isinstance(answer, str) else answer.message

    def fail(self, error: frames.SessionError) -> Draft:
        """The turn cannot go on."""
        self._failed = error.error_type or "error"
        reason = self._provider_message
        message = error.message if reason is None or reason in error.message else f"{error.message}\n{reason}"
        fallback = "agent_error" if error.status_code is None and reason is None else "provider_error"
        details = {"type": error.error_type, "status": error.status_code, "code": error.error_code}
        known = {name: value for name, value in details.items() if value}
        return say.failure(message, _CODES.get(error.error_type, fallback), known)


def _sum(before: int | None, more: frames.Number | None) -> int | None:
    return before if more is None else (before or 0) + int(more)
