"""One turn of OpenCode: what must have happened before it is over, how it ends, and what it used."""

from ostler.agents.adapter import TurnDone
from ostler.agents.opencode import frames
from ostler.wire.events import Cost, UsageUpdatedData
from ostler.wire.running import Draft

MOST_RETRIES = 4
"""OpenCode itself would try for ever; with its pauses of 2, 4, 8 s this is a quarter of a minute."""


class Turn:
    """A turn is over when the session is idle, every prompt was taken, every answer is final and no abort is under way.

    OpenCode says idle twice after an abort or an error, the first time before the last parts, and a prompt may still be
    on its way when the session becomes idle; so no single event is the end.
    """

    def __init__(self, text: str = "") -> None:
        self.texts = [text]
        """What was said in this turn."""
        self.messages: list[str] = []
        """The messages that it became, in the same order."""
        self.read = 1
        """How many of them the model was shown, or is about to be: the prompt is never taken back."""
        self.withdrawing = 0
        """Messages that are being taken back."""
        self.awaited = 1
        """Prompts that OpenCode has not turned into a message yet."""
        self.unfinished: set[str] = set()
        """Messages of the assistant that still grow."""
        self.idles = 0
        """How often the session said idle since it was last busy."""
        self.aborting = False
        self.interrupted = False
        self.failure: str | None = None
        self.text = ""
        """The last text of the assistant."""
        self._steps: list[frames.StepFinish] = []

    def refuse(self) -> None:
        """A prompt failed before it became a message: nobody will work on it or say idle after it."""
        self.failure = "error"
        self.awaited = max(0, self.awaited - 1)
        self.idles = max(self.idles, 1)

    def is_over(self) -> bool:
        """Whether nothing more will come."""
        busy = self.awaited or self.aborting or self.withdrawing
        return self.idles > 0 and not busy and (not self.unfinished or self.idles > 1)

    def answered(self, message: str | None) -> None:
        """The model answers this message, and so has read all before it."""
        if message in self.messages:
            self.read = max(self.read, self.messages.index(message) + 1)

    def take_unread(self) -> list[tuple[str, str]]:
        """The messages that an interrupt takes back, with their texts, once."""
        unread = list(zip(self.messages, self.texts, strict=False))[self.read :] if self.interrupted else []
        self.read += len(unread)
        return unread

    def end(self) -> TurnDone:
        """How it ended."""
        if self.failure is not None:
            return TurnDone(outcome="failed", stop_reason=self.failure)
        if self.interrupted:
            return TurnDone(outcome="interrupted", stop_reason="interrupted")
        return TurnDone(outcome="completed", stop_reason="end_turn")

    def used(self, step: frames.StepFinish, *, in_context: bool, window: int | None) -> Draft:
        """Tokens and cost so far; the steps of sub-agents count but are not in the context."""
        self._steps.append(step)
        tokens = [one.tokens for one in self._steps]
        data = UsageUpdatedData(
            input_tokens=sum(one.sent for one in tokens),
            output_tokens=sum(one.output for one in tokens),
            cached_input_tokens=sum(one.cache.read for one in tokens),
            reasoning_tokens=sum(one.reasoning for one in tokens),
            cost=Cost(amount=sum(one.cost for one in self._steps), currency="USD"),
            context_used=step.tokens.sent + step.tokens.output if in_context else None,
            context_window=window if in_context else None,
        )
        return Draft("usage.updated", data)
