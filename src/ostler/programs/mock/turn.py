"""The mock agent and its turn: everything a directive can do, as plain methods."""

import json
import time
from collections import deque
from collections.abc import Callable, Iterable

from ostler.programs.mock.channel import Channel, Frame
from ostler.programs.mock.memory import Memory

FLAGS = {
    "--model": ("mock-small", ()),
    "--variant": ("low", ()),
    "--mode": ("build", ("build", "plan")),
    "--permission-mode": ("default", ("default", "plan", "bypass")),
    "--resume": ("", ()),
    "--instructions": ("", ()),
}


class Interrupted(Exception):
    """Somebody ended the turn."""


class EndOfTurn(Exception):
    """The agent ends its turn early, in good order."""


class BadDirective(Exception):
    """A directive makes no sense; the text says why."""


class Failed(Exception):
    """The turn fails with this message."""


class Limited(Failed):
    """The turn fails because of a limit."""

    def __init__(self, ends: float) -> None:
        super().__init__("You have hit your limit.")
        self.ends = ends
        """When it ends, in seconds since 1970."""


class Options:
    """How the agent was started."""

    def __init__(self, values: dict[str, str]) -> None:
        self.model = values["--model"]
        self.variant = values["--variant"]
        self.mode = values["--mode"]
        self.permission_mode = values["--permission-mode"]
        self.resume = values["--resume"] or None
        self.instructions = values["--instructions"] or None
        """The file they stand in."""

    @classmethod
    def parse(cls, arguments: list[str]) -> "Options":
        """Read the flags; raises ValueError for one that makes no sense."""
        values = {flag: default for flag, (default, _) in FLAGS.items()}
        for flag, value in zip(arguments[::2], [*arguments[1::2], ""], strict=False):
            if flag not in FLAGS or not value:
                raise ValueError(f"unknown flag or missing value: {flag}")
            allowed = FLAGS[flag][1]
            if allowed and value not in allowed:
                raise ValueError(f"{flag} must be one of {', '.join(allowed)}, not {value}")
            values[flag] = value
        return cls(values)

    def may_write(self) -> bool:
        """Whether files may be changed and commands run at all."""
        return self.mode != "plan" and self.permission_mode != "plan"


class Agent:
    """What lasts longer than a turn."""

    def __init__(self, channel: Channel, options: Options, memory: Memory) -> None:
        self.channel = channel
        self.options = options
        self.memory = memory
        self.waiting: deque[Frame] = deque()
        """Prompts that came during a turn."""
        self.heard: list[str] = []
        """Steering that no turn has taken up yet."""
        self._last_id = 0

    def forget_heard(self) -> None:
        """The turn is interrupted: what nobody took up goes with it."""
        if self.heard:
            self.channel.send("unheard", texts=self.heard)
            self.heard = []

    def next_id(self) -> int:
        """A number that names one thing in this process."""
        self._last_id += 1
        return self._last_id

    def ready(self) -> None:
        """Tell that prompts are welcome."""
        chosen = self.options
        self.channel.send(
            "ready", session=self.memory.session, model=chosen.model, variant=chosen.variant, mode=chosen.mode
        )


class Turn:
    """One turn: keeps at most one message open and listens to the user while it works."""

    def __init__(self, agent: Agent, prompt: Frame) -> None:
        self.agent = agent
        self.options = agent.options
        self.text = str(prompt.get("text") or "")
        self.images = _paths(prompt, "images")
        self.files = _paths(prompt, "files")
        self.send = agent.channel.send
        self._message: int | None = None
        self._parts: list[tuple[str, list[str]]] = []
        self._tools: list[int] = []
        self._replies: dict[int, Frame] = {}

    def say(self, text: str, rate: float = 0) -> None:
        """Stream a paragraph word by word, at so many words per second; 0 is as fast as possible."""
        if self._parts and self._parts[-1][0] == "text":
            self.grow("text", "\n")
        self._stream("text", _pieces(text), rate)

    def think(self, text: str, rate: float = 0) -> None:
        """Stream a thought."""
        self._stream("thinking", _pieces(text), rate)

    def stream(self, words: Iterable[str], rate: float) -> None:
        """Stream pieces of text as they are."""
        self._stream("text", words, rate)

    def _stream(self, kind: str, pieces: Iterable[str], rate: float) -> None:
        start = time.monotonic()
        for count, piece in enumerate(pieces):
            self.pause(max(0.0, start + count / rate - time.monotonic()) if rate else 0)
            self.grow(kind, piece)

    def grow(self, kind: str, piece: str) -> None:
        """Add one piece to the open message, without listening to the user."""
        if self._message is None:
            self._message = self.agent.next_id()
            self.send("message_start", id=self._message)
        if not self._parts or self._parts[-1][0] != kind:
            self._parts.append((kind, []))
        self._parts[-1][1].append(piece)
        self.send(kind, id=self._message, delta=piece)

    def end_message(self) -> None:
        """Close the open message, if there is one."""
        if self._message is not None:
            parts = [{"kind": kind, "text": "".join(pieces)} for kind, pieces in self._parts]
            self.send("message_end", id=self._message, parts=parts)
            self._message, self._parts = None, []

    def start_tool(self, name: str, given: object) -> int:
        """Open a tool call."""
        self.end_message()
        tool = self.agent.next_id()
        self._tools.append(tool)
        self.send("tool_start", id=tool, name=name, input=given)
        return tool

    def type_tool(self, name: str, given: object) -> int:
        """Open a tool call, and write its input after that."""
        self.end_message()
        tool = self.agent.next_id()
        self._tools.append(tool)
        self.send("tool_start", id=tool, name=name)
        for piece in _pieces(json.dumps(given)):
            self.send("tool_input", id=tool, delta=piece)
        return tool

    def end_tool(self, tool: int, output: str, *, ok: bool = True) -> None:
        """Close a tool call with what it answered."""
        self._tools.remove(tool)
        self.send("tool_end", id=tool, ok=ok, output=output)

    def ask_permission(self, action: str, tool: str | None = None) -> tuple[bool, str]:
        """Whether the user allows this, and what they said about it."""
        if self.options.permission_mode == "bypass":
            return True, ""
        reply = self._ask("permission", {"action": action, "tool": tool})
        return reply.get("allow") is True, str(reply.get("message") or "")

    def ask_questions(self, questions: list[Frame]) -> tuple[list[list[str]] | None, str]:
        """The answers to each question, or None and the reason if the user declined."""
        reply = self._ask("question", {"questions": questions})
        answers = reply.get("answers")
        message = str(reply.get("message") or "")
        return [list(map(str, answer)) for answer in answers] if isinstance(answers, list) else None, message

    def _ask(self, kind: str, fields: Frame) -> Frame:
        self.end_message()
        ask = self.agent.next_id()
        self.send(kind, id=ask, **fields)
        while ask not in self._replies:
            self._take(self.agent.channel.receive(None))
        return self._replies.pop(ask)

    def pause(self, seconds: float) -> None:
        """Wait, but hear what the user sends meanwhile."""
        deadline = time.monotonic() + seconds
        while (frame := self.agent.channel.receive(max(0.0, deadline - time.monotonic()))) is not None:
            self._take(frame)

    def pause_until_steered(self) -> None:
        """Wait until the user adds something to this turn."""
        while not self.agent.heard:
            self._take(self.agent.channel.receive(None))

    def _take(self, frame: Frame | None) -> None:
        if frame is None:
            return
        if frame.get("type") == "interrupt":
            raise Interrupted
        if (accept := self._inputs().get(str(frame.get("type")))) is not None:
            accept(frame)

    def _inputs(self) -> dict[str, Callable[[Frame], None]]:
        return {"prompt": self.agent.waiting.append, "steer": self._steer, "reply": self._reply, "answer": self._reply}

    def _steer(self, frame: Frame) -> None:
        self.agent.heard.append(str(frame.get("text") or ""))

    def _reply(self, frame: Frame) -> None:
        if isinstance(ask := frame.get("id"), int):
            self._replies[ask] = frame

    def end(self, outcome: str, reason: str | None = None) -> None:
        """Close whatever is open and tell that the turn is over."""
        self.end_message()
        for tool in list(self._tools):
            self.end_tool(tool, outcome, ok=False)
        self.send("done", outcome=outcome, reason=reason)


def _pieces(text: str) -> list[str]:
    words = text.split(" ")
    return [*(f"{word} " for word in words[:-1]), words[-1]]


def _paths(prompt: Frame, name: str) -> list[str]:
    found = prompt.get(name)
    return [path for path in found if isinstance(path, str)] if isinstance(found, list) else []
