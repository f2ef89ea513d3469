"""Counts what a turn costs: after each model call by its tokens, at each result by Claude Code's own sum."""

import msgspec

from ostler.agents.claude_code.frames import ModelEvent, Result, Usage
from ostler.wire.events import Cost, UsageUpdatedData
from ostler.wire.running import Draft


class Meter:
    """The main conversation of one process. A turn may have several results, when words were added to it late."""

    def __init__(self) -> None:
        self._turn = UsageUpdatedData()
        """What the results of this turn say so far."""
        self._input = self._output = 0
        """Model calls since the last result."""
        self._call = Usage()
        self._spent = 0.0

    def begin_turn(self) -> None:
        """A new turn costs nothing yet."""
        self._turn = UsageUpdatedData()

    def on_event(self, event: ModelEvent) -> list[Draft]:
        """An event of the model's stream; the one with the final tokens of a call gives news."""
        if event.message is not None:
            self._call = event.message.usage
        if event.type != "message_delta" or event.usage is None:
            return []
        given = event.usage if event.usage.input else self._call
        self._call = msgspec.structs.replace(given, output_tokens=event.usage.output_tokens)
        self._input += self._call.input
        self._output += self._call.output_tokens or 0
        return [Draft("usage.updated", self._so_far(self._input, self._output))]

    def on_result(self, frame: Result, model: str | None) -> list[Draft]:
        """Claude Code's own sum, which counts sub-agents too."""
        total = frame.total_cost_usd or self._spent
        cost, self._spent = total - self._spent, total
        if frame.since_last_result:
            cost = sum(used.cost or 0 for used in frame.since_last_result.values())
        known = frame.model_usage.get(model or "")
        summed = self._so_far(frame.usage.input, frame.usage.output_tokens or 0)
        self._turn = msgspec.structs.replace(
            summed,
            cached_input_tokens=(self._turn.cached_input_tokens or 0) + (frame.usage.cache_read_input_tokens or 0),
            cost=Cost(amount=round(cost + (self._turn.cost.amount if self._turn.cost else 0), 9), currency="USD"),
            context_window=known.context_window if known else None,
        )
        self._input = self._output = 0
        return [Draft("usage.updated", self._turn)]

    def _so_far(self, input_tokens: int, output_tokens: int) -> UsageUpdatedData:
        used = self._call.input + (self._call.output_tokens or 0)
        return msgspec.structs.replace(
            self._turn,
            input_tokens=(self._turn.input_tokens or 0) + input_tokens,
            output_tokens=(self._turn.output_tokens or 0) + output_tokens,
            context_used=used or None,
        )
