"""What a translator knows about a running Codex: its threads, turns, open items and open asks."""

from collections.abc import Sequence
from typing import Any

from ostler.agents import say
from ostler.agents.adapter import Output, Send, TurnDone
from ostler.agents.codex import thread
from ostler.agents.codex.asks import Ask
from ostler.agents.codex.frames import Tokens
from ostler.agents.codex.items import Place
from ostler.agents.jsonrpc import Calls
from ostler.wire.agents import Model
from ostler.wire.running import AgentSpec


class State:
    """One process with the session's thread and those of its sub-agents; changed by every frame."""

    def __init__(self, spec: AgentSpec) -> None:
        self.spec = spec
        self.calls = Calls(member=False)
        self.thread = ""
        self.model = ""
        self.models: tuple[Model, ...] = ()
        self.planning = spec.mode == "plan" or spec.permission_mode == "plan"
        self.turns: dict[str, str] = {}
        """Thread -> its turn under way."""
        self.parents: dict[str, str] = {}
        """Thread of a sub-agent -> the item of the call that spawned it."""
        self.spawning: str | None = None
        self.open: dict[str, thread.ToolItem] = {}
        """Native id -> open call."""
        self.commands: dict[str, str] = {}
        """Native id of a command that runs, as far as we know -> its thread."""
        self.thinking: set[str] = set()
        """Reasoning that has said something."""
        self.asks: dict[str, Ask] = {}
        self.totals: dict[str, Tokens] = {}
        self.limits: dict[str, float] = {}
        """Limit of the account that is reached -> when it ends, in seconds since 1970."""
        self.begin()

    def begin(self) -> None:
        """A prompt comes: forget the turn before it."""
        self.base = dict(self.totals)
        self.plan: str | None = None
        self.unread = [""]
        """What was said in this turn and is not in Codex's thread yet; the prompt itself has no name here."""
        self.has_failed = False
        self.is_interrupted = False
        self.end: TurnDone | None = None
        """How the turn ends once the commands that it left are gone."""

    # Names

    def name(self, prefix: str, native: int | str) -> str:
        """An id that is unique in the session."""
        return f"{prefix}_{self.spec.start}_{native}"

    def place(self, thread_id: str, native: str) -> Place:
        """Where a native item stands."""
        parent = None if thread_id == self.thread else self.parents.get(thread_id, self.spawning)
        return Place(item_id=self.name("itm", native), native=native, parent_id=parent)

    def adopt(self, thread_id: str, item_id: str) -> None:
        """This thread is a sub-agent's."""
        if thread_id != self.thread:
            self.parents.setdefault(thread_id, item_id)

    # Requests to Codex

    def start_turn(self, content: Sequence[dict[str, Any]]) -> Send:
        """Begin a turn of Codex."""
        settings = {"model": self.model, "reasoning_effort": self.spec.variant, "developer_instructions": None}
        mode = {"mode": "plan" if self.planning else "default", "settings": settings}
        params = {"threadId": self.thread, "input": content, "collaborationMode": mode}
        return self.calls.request("turn/start", params)

    def steer(self, thread_id: str, content: Sequence[dict[str, Any]]) -> list[Output]:
        """Say something in a running turn."""
        turn = self.turns.get(thread_id)
        if turn is None:
            return []
        if thread_id == self.thread:
            self.unread.append("\n".join(block["text"] for block in content if block["type"] == "text"))
        params = {"threadId": thread_id, "expectedTurnId": turn, "input": content}
        return [self.calls.request("turn/steer", params)]

    def stop_turns(self) -> list[Output]:
        """End all turns, the session's own first."""
        turns = sorted(self.turns.items(), key=lambda item: item[0] != self.thread)
        return [self.calls.request("turn/interrupt", {"threadId": at, "turnId": turn}) for at, turn in turns]

    # Ends

    def finish(self, end: TurnDone) -> list[Output]:
        """End the turn; after an interrupt only when its commands are gone, which Codex leaves running."""
        if end.outcome != "interrupted":
            return [end]
        unread = [say.unheard(text) for text in self.unread if text]
        if not self.commands:
            return [*unread, end]
        self.end = end
        method = "thread/backgroundTerminals/clean"
        return [*unread, *(self.calls.request(method, {"threadId": at}) for at in sorted(set(self.commands.values())))]

    def finished(self) -> list[Output]:
        """The end that waited for commands, once none is left."""
        if self.end is None or self.commands:
            return []
        end, self.end = self.end, None
        return [end]
