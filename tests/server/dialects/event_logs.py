"""Logs of events for tests of projections: written by hand, or random ones that no agent would write."""

from collections.abc import Callable
from typing import Any

import msgspec
from hypothesis import strategies as st

from ostler.wire import events
from ostler.wire.events import EVENTS, AnyEvent, decode_event
from ostler.wire.items import Item, ItemKind, ItemRole, ItemStatus, PlanEntry, PlanUpdatedData
from ostler.wire.parts import ContentPart, ReasoningPart, StatusPart, TextPart, ToolCallPart, ToolResultPart
from ostler.wire.workspace_events import ArtifactCreatedData, SessionRewoundData

ROLES: dict[str, ItemRole] = {"message": "assistant", "tool_call": "assistant", "tool_result": "tool"}


class Writer:
    """Writes a log; every event is one that a server could have stored."""

    def __init__(self) -> None:
        self.events: list[AnyEvent] = []

    def add(self, kind: str, data: msgspec.Struct) -> None:
        """Append an event."""
        number = len(self.events) + 1
        envelope = {
            "type": kind,
            "event_id": f"evt_{number}",
            "sequence": number,
            "time": "2026-01-01T00:00:00.000Z",
            "session_id": "ses_1",
            "source": "agent",
            "synthetic": False,
            "data": data,
        }
        event = decode_event(msgspec.json.encode(envelope))
        assert isinstance(event, EVENTS[kind])
        self.events.append(event)

    def turn(self, turn_id: str = "trn_1") -> None:
        self.add("turn.started", events.TurnStartedData(phase="started", turn_id=turn_id))

    def end(self, outcome: events.TurnOutcome = "completed", reason: str | None = None) -> None:
        self.add(
            "turn.ended", events.TurnEndedData(phase="ended", outcome=outcome, turn_id="trn_1", stop_reason=reason)
        )

    def started(self, item: Item) -> None:
        self.add("item.started", events.ItemStartedData(item=item))

    def completed(self, item: Item) -> None:
        self.add("item.completed", events.ItemCompletedData(item=item))

    def grew(self, item_id: str, delta: ContentPart) -> None:
        self.add("item.delta", events.ItemDeltaData(item_id=item_id, delta=delta))

    def say(self, item_id: str, *words: str) -> None:
        """A whole message, one delta a word."""
        self.started(item(item_id, "message"))
        for word in words:
            self.grew(item_id, TextPart(text=word))
        self.completed(item(item_id, "message", TextPart(text="".join(words)), status="completed"))

    def ask(self, ask_id: str, status: events.PermissionStatus = "requested", **more: Any) -> None:
        kind = "permission.requested" if status == "requested" else "permission.resolved"
        data = events.PermissionData(permission_id=ask_id, action="delete the notes", status=status, **more)
        self.add(kind, data)

    def question(self, ask_id: str, status: events.QuestionStatus = "requested") -> None:
        kind = "question.requested" if status == "requested" else "question.resolved"
        self.add(kind, events.QuestionData(question_id=ask_id, prompt="Tea?", options=("yes", "no"), status=status))

    def printed(self, text: str, item_id: str | None = None) -> None:
        self.add("terminal.output", events.TerminalOutputData(stream="stdout", data=text, item_id=item_id))

    def made(self, path: str, item_id: str) -> None:
        data = ArtifactCreatedData(path=path, action="write", artifact_type="text", item_id=item_id)
        self.add("artifact.created", data)

    def rewound(self, turn: int) -> None:
        data = SessionRewoundData(turn=turn, sequence=1, snapshot_id="snp_1", workspace_id="wsp_1")
        self.add("session.rewound", data)

    def error(self, message: str) -> None:
        self.add("error", events.ErrorData(message=message, code="agent_error"))


def item(
    item_id: str, kind: ItemKind, *content: ContentPart, status: ItemStatus = "in_progress", parent: str | None = None
) -> Item:
    """An item of the assistant's side."""
    return Item(
        item_id=item_id, kind=kind, role=ROLES.get(kind), status=status, content=tuple(content), parent_id=parent
    )


def call(item_id: str, name: str, arguments: str, *, status: ItemStatus = "in_progress") -> Item:
    """A tool call."""
    return item(item_id, "tool_call", typed(item_id, name, arguments), status=status)


def typed(item_id: str, name: str, arguments: str) -> ToolCallPart:
    """The arguments of a tool call, or a piece of them."""
    return ToolCallPart(name=name, arguments=arguments, call_id=f"call_{item_id}")


def result(call_id: str, output: str, *, status: ItemStatus = "completed") -> Item:
    """The answer to a tool call."""
    part = ToolResultPart(call_id=f"call_{call_id}", output=output)
    return item(f"{call_id}_result", "tool_result", part, status=status, parent=call_id)


# Random logs

_NAMES = st.sampled_from(["a", "b", "c"])
_ENDS: st.SearchStrategy[ItemStatus] = st.sampled_from(["completed", "failed"])
Act = Callable[[Writer, str], None]
"""Writes something into a log; the text is one that nothing else in the log has."""


def _act(write: Callable[..., None], *choices: st.SearchStrategy[Any]) -> st.SearchStrategy[Act]:
    return st.tuples(*choices).map(lambda chosen: lambda log, text: write(log, text, *chosen))


ACTS: st.SearchStrategy[Act] = st.one_of(
    _act(lambda log, text: log.turn(f"trn_{len(log.events)}")),
    _act(lambda log, text, end: log.end(end), st.sampled_from(["completed", "interrupted", "failed"])),
    _act(lambda log, text, name: log.started(item(name, "message")), _NAMES),
    _act(lambda log, text, name: log.started(item(name, "message", TextPart(text=text))), _NAMES),
    _act(lambda log, text, name: log.grew(name, TextPart(text=text)), _NAMES),
    _act(lambda log, text, name: log.grew(name, ReasoningPart(text=text, visibility="public")), _NAMES),
    _act(
        lambda log, text, name, end: log.completed(item(name, "message", TextPart(text=text), status=end)),
        _NAMES,
        _ENDS,
    ),
    _act(lambda log, text, name: log.started(call(f"call{name}", "search", f'{{"q":"{text}"}}')), _NAMES),
    _act(lambda log, text, name: log.started(call(f"call{name}", "search", '{"q":"half')), _NAMES),
    _act(lambda log, text, name: log.started(call(f"call{name}", "search", "")), _NAMES),
    _act(lambda log, text, name: log.grew(f"call{name}", typed(f"call{name}", "search", text)), _NAMES),
    _act(lambda log, text, name, end: log.completed(call(f"call{name}", "search", "{}", status=end)), _NAMES, _ENDS),
    _act(lambda log, text, name: log.started(item(f"call{name}_result", "tool_result", parent=f"call{name}")), _NAMES),
    _act(lambda log, text, name: log.grew(f"call{name}_result", TextPart(text=text)), _NAMES),
    _act(lambda log, text, name, end: log.completed(result(f"call{name}", text, status=end)), _NAMES, _ENDS),
    _act(lambda log, text, name: log.printed(text, f"call{name}"), _NAMES),
    _act(lambda log, text: log.printed(text)),
    _act(lambda log, text, name: log.ask(f"per_{name}", item_id=f"call{name}"), _NAMES),
    _act(lambda log, text, name: log.ask(f"per_{name}"), _NAMES),
    _act(
        lambda log, text, name, status: log.ask(f"per_{name}", status, message=text),
        _NAMES,
        st.sampled_from(["accept", "accept_for_session", "reject"]),
    ),
    _act(lambda log, text, name: log.question(f"que_{name}"), _NAMES),
    _act(lambda log, text, name: log.question(f"que_{name}", "answered"), _NAMES),
    _act(lambda log, text: log.error(text)),
    _act(lambda log, text: log.add("notice", events.NoticeData(severity="info", message=text))),
    _act(lambda log, text: log.add("log", events.LogData(level="info", message=text))),
    _act(lambda log, text: log.add("usage.updated", events.UsageUpdatedData(input_tokens=7, output_tokens=9))),
    _act(
        lambda log, text: log.add(
            "plan.updated",
            PlanUpdatedData(entries=(PlanEntry(content=text, status="pending"),)),
        )
    ),
    _act(
        lambda log, text, name: log.add(
            "file.changed", events.FileChangedData(path=text, action="modified", item_id=f"call{name}")
        ),
        _NAMES,
    ),
    _act(lambda log, text, name: log.completed(item(f"status{name}", "status", StatusPart(label=text))), _NAMES),
    _act(lambda log, text, name: log.made(text, f"call{name}"), _NAMES),
    _act(lambda log, text: log.add("session.info", events.SessionInfoData(title=text))),
    _act(lambda log, text: log.rewound(turn=0)),
)


@st.composite
def logs(draw: st.DrawFn) -> list[AnyEvent]:
    """A log of one turn and whatever else; each text in it is there once, and in the end everything is over."""
    writer = Writer()
    writer.add("session.started", events.SessionStartedData())
    writer.turn()
    for number, act in enumerate(draw(st.lists(ACTS, max_size=40))):
        act(writer, f"<{number}>")
    writer.end()
    writer.add("session.ended", events.SessionEndedData(reason="terminated", terminated_by="daemon"))
    return writer.events


_WORDS = st.lists(st.text(min_size=1, max_size=12), min_size=1, max_size=6)


@st.composite
def conversations(draw: st.DrawFn) -> tuple[list[AnyEvent], str]:
    """A log of turns as agents write them, and all that was said in it; some agents tell it without deltas."""
    writer, said = Writer(), ""
    for turn in range(draw(st.integers(min_value=1, max_value=3))):
        writer.turn(f"trn_{turn}")
        for number, words in enumerate(draw(st.lists(_WORDS, max_size=3))):
            name = f"itm_{turn}_{number}"
            if draw(st.booleans()):
                writer.say(name, *words)
            else:
                writer.completed(item(name, "message", TextPart(text="".join(words)), status="completed"))
            writer.started(call(f"{name}_call", "search", "{}"))
            writer.completed(call(f"{name}_call", "search", "{}", status="completed"))
            writer.completed(result(f"{name}_call", "found"))
            said += "".join(words)
        writer.end()
    return writer.events, said
