"""The script in the prompt: which actions it has and what the model replies."""

from __future__ import annotations

import hashlib
import re
import threading
from collections.abc import Callable
from dataclasses import dataclass, replace

from ostler.conformance.model.actions import Block, Call, Fault, Reply, Say, ScriptError, Think, Wait
from ostler.conformance.model.conversation import SCRIPT_LINE, Conversation
from ostler.conformance.model.tools import bind

HOUSEKEEPING = re.compile(
    r"\b(title generator|generates? (?:an? )?(?:[\w-]+,? ){0,4}(?:titles?|names?)|"
    r"conversation title|"
    r"session title|short title|is a new topic|new conversation topic|branch name|"
    r"summari[sz]e (?:this|the) (?:coding )?(?:conversation|session)|"
    r"recap of|tab[- ]?title|thread title|prompt suggestion|suggestion mode)\b",
    re.IGNORECASE,
)


FAULTS = {
    "error": "status",
    "overflow": "status",
    "limit": "limit",
    "malformed": "malformed",
    "cut": "cut",
    "quiet": "quiet",
    "fail-in-stream": "inside",
}
COMPACTION = re.compile(r"Write a summary of this conversation so far")
"""An agent asks for what is to take the place of a conversation; no line of the script is about that."""
TOO_LONG = "prompt is too long: 210000 tokens > 200000 maximum"
STOPS = {"refuse": "refusal", "length": "length"}
TOOL_KINDS = ("bash", "read", "write", "edit", "ask", "plan", "todo", "delegate", "tool")


@dataclass(frozen=True)
class Action:
    """One thing to do: a verb and what it is about."""

    verb: str
    rest: str = ""


def parse_script(text: str) -> list[list[Action]]:
    """The steps in a user message: one list of actions per SCRIPT line."""
    steps = []
    for line in SCRIPT_LINE.findall(text):
        actions = []
        for part in re.split(r"\s+;;\s+", line):
            verb, _, rest = part.strip().partition(" ")
            actions.append(Action(verb, rest.strip().replace("\\n", "\n")))
        steps.append(actions)
    return steps


class Player:
    """Turns a conversation into the next reply."""

    def __init__(self) -> None:
        self._failures: dict[str, int] = {}
        self._lock = threading.Lock()

    def reply(self, conv: Conversation) -> Reply:
        if (words := self._housekeeping(conv)) is not None:
            return Reply([Say(words)])
        start = next(
            (
                i
                for i in range(len(conv.turns) - 1, -1, -1)
                if conv.turns[i].side == "user" and SCRIPT_LINE.search(conv.turns[i].text)
            ),
            None,
        )
        if start is None:
            return Reply([Say(f"Echo: {_shorten(conv.last_user_text)}")])
        steps = parse_script(conv.turns[start].text)
        model_turns = [t for t in conv.turns[start + 1 :] if t.side == "model" and not t.searches]
        if any(t.calls == 0 for t in model_turns):
            # That script ended (a turn without a call ends it) and the user went on.
            return Reply([Say(f"Echo: {_shorten(conv.last_user_text)}")])
        if len(model_turns) < len(steps):
            try:
                return self._play(steps[len(model_turns)], conv)
            except ScriptError as exc:
                return Reply([Say(f"Script error: {exc}")])
        return Reply([Say(f"Finished. Tool result: {_shorten(conv.last_result or '(none)')}")])

    @staticmethod
    def _housekeeping(conv: Conversation) -> str | None:
        """The answer to what is no turn of the script; None for one that is."""
        if conv.turns and COMPACTION.search(conv.turns[-1].text):
            return f"Scripted summary of {len(conv.turns)} turns"
        # A real agent turn offers tools; side queries for titles and the like do not.
        asks = not conv.tools and (HOUSEKEEPING.search(conv.system) or HOUSEKEEPING.search(conv.last_user_text))
        return "Scripted title" if asks else None

    def _play(self, actions: list[Action], conv: Conversation) -> Reply:
        blocks: list[Block] = []
        stop = None
        for action in actions:
            if action.verb in FAULTS:
                if (fault := self._fault(action, conv)) is not None:
                    is_stream = fault.kind not in {"status", "limit"}
                    return Reply(blocks or ([Say("This stream is going to break")] if is_stream else []), fault)
            elif action.verb in STOPS:
                stop = STOPS[action.verb]
            elif action.verb == "badjson":
                blocks.append(replace(_last_call(blocks), broken=True))
            elif action.verb in TOOL_KINDS:
                blocks += _call(action, conv)
            elif action.verb in SPOKEN:
                blocks.append(SPOKEN[action.verb](action.rest, conv))
            else:
                raise ScriptError(f"unknown action {action.verb!r}")
        return Reply(blocks or [Say("(nothing)")], stop=stop)

    def _fault(self, action: Action, conv: Conversation) -> Fault | None:
        """How this call fails; None if it does not any more."""
        words = [word for word in action.rest.split() if "=" not in word]
        after = next((float(word[6:]) for word in action.rest.split() if word.startswith("after=")), None)
        match action.verb:
            case "error":
                fault, times = Fault("status", int(words[0]), after=after), words[1:]
            case "overflow":
                fault, times = Fault("status", 400, words=TOO_LONG), words
            case "limit":
                fault, times = Fault("limit", 429, int(words[0])), []
            case _:
                fault, times = Fault(FAULTS[action.verb]), words
        return fault if self._fails(conv, int(times[0]) if times else None) else None

    def _fails(self, conv: Conversation, times: int | None) -> bool:
        """Whether an `error` action fails now: always, or only its first `times` calls."""
        if times is None:
            return True
        key = hashlib.sha256(conv.last_user_text.encode()).hexdigest()
        with self._lock:
            self._failures[key] = self._failures.get(key, 0) + 1
            return self._failures[key] <= times


def _shorten(text: str, limit: int = 300) -> str:
    text = " ".join(text.split())
    return text if len(text) <= limit else text[:limit] + "..."


def _recall(conv: Conversation) -> str:
    users = [t for t in conv.turns if t.side == "user" and SCRIPT_LINE.search(t.text)]
    images = sum(t.images for t in conv.turns)
    first = SCRIPT_LINE.search(users[0].text) if users else None
    quoted = _shorten(first.group(1), 80) if first else ""
    return f"Recall: {len(users)} scripted user turns, {images} images, first: {quoted}"


def _watchword(conv: Conversation) -> str:
    prompts = "\n".join([conv.system, *(turn.text for turn in conv.turns if turn.side == "user")])
    found = re.search(r"watchword is told: ([\w-]+)", prompts)
    return f"The watchword is {found.group(1)}." if found else "Nobody told me a watchword."


def _call(action: Action, conv: Conversation) -> list[Block]:
    if action.verb == "plan" and "<proposed_plan>" in conv.system:  # this agent wants it in its answer
        return [Say(f"<proposed_plan>\n{action.rest}\n</proposed_plan>")]
    call = bind(action.verb, action.rest, conv.tools)
    if action.verb == "plan" and not call.arguments:  # its tool takes no text
        return [Say(action.rest), call]
    return [call]


def _last_call(blocks: list[Block]) -> Call:
    """Takes the call away that stands before `badjson`."""
    if not blocks or not isinstance(blocks[-1], Call):
        raise ScriptError("badjson needs a call before it")
    call = blocks.pop()
    assert isinstance(call, Call)  # noqa: S101  looked at above
    return call


def _slow(rest: str, _: Conversation) -> Say:
    count, interval = rest.split()
    ticks = " ".join(f"tick{i}" for i in range(1, int(count) + 1))
    return Say(ticks, chunks=int(count), interval=float(interval))


SPOKEN: dict[str, Callable[[str, Conversation], Block]] = {
    "say": lambda rest, _: Say(rest),
    "think": lambda rest, _: Think(rest),
    "slow": _slow,
    "wait": lambda rest, _: Wait(float(rest)),
    "recall": lambda _, conv: Say(_recall(conv)),
    "watchword": lambda _, conv: Say(_watchword(conv)),
    "tools": lambda _, conv: Say("Tools: " + ", ".join(tool.name for tool in conv.tools)),
}
"""Actions that call no tool."""
