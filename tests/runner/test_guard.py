"""The turn guard mends what agents get wrong; each case is what goes in and the whole of what comes out."""

from collections.abc import Sequence
from typing import Any

import msgspec
import pytest

from ostler.agents.adapter import TurnDone
from ostler.runner.execution import guard as guard_module
from ostler.runner.execution.guard import TurnGuard
from ostler.wire.events import (
    ItemCompletedData,
    ItemDeltaData,
    ItemStartedData,
    PermissionData,
    QuestionData,
    TerminalOutputData,
    TurnEndedData,
    TurnOutcome,
    UsageUpdatedData,
)
from ostler.wire.items import Item, ItemKind, ItemRole, ItemStatus
from ostler.wire.parts import ContentPart, ReasoningPart, StatusPart, TextPart, ToolCallPart
from ostler.wire.running import Draft

CALL = ToolCallPart(name="ls", arguments="{}", call_id="c")
FRAME = b'{"done":true}'


def text(value: str) -> TextPart:
    return TextPart(text=value)


def item(status: ItemStatus, *content: ContentPart, kind: ItemKind = "message") -> Item:
    role: ItemRole | None = "assistant" if kind == "message" else None
    return Item(item_id="i", kind=kind, role=role, status=status, content=content)


def draft(kind: str, data: msgspec.Struct) -> Draft:
    return Draft(kind, data, raw=b"{}")


def started(value: Item) -> Draft:
    return draft("item.started", ItemStartedData(item=value))


def delta(part: ContentPart) -> Draft:
    return draft("item.delta", ItemDeltaData(item_id="i", delta=part))


def completed(value: Item) -> Draft:
    return draft("item.completed", ItemCompletedData(item=value))


def ours(value: Draft) -> Draft:
    return Draft(value.type, value.data, source="daemon", synthetic=True)


def permission(status: Any = "requested", **metadata: str) -> Draft:
    data = PermissionData(permission_id="p", action="write", status=status, metadata=metadata or None)
    return draft(f"permission.{'requested' if status == 'requested' else 'resolved'}", data)


def question(status: Any = "requested", **metadata: str) -> Draft:
    data = QuestionData(question_id="q", prompt="Tea?", options=("yes",), status=status, metadata=metadata or None)
    return draft(f"question.{'requested' if status == 'requested' else 'resolved'}", data)


def ended(outcome: TurnOutcome, reason: str | None = None) -> Draft:
    return Draft(
        "turn.ended", TurnEndedData(phase="ended", turn_id="t", outcome=outcome, stop_reason=reason), raw=FRAME
    )


def run(outputs: Sequence[Draft | TurnDone]) -> list[Draft]:
    guard = TurnGuard()
    guard.begin("t")
    made = []
    for output in outputs:
        made += guard.done(output, FRAME) if isinstance(output, TurnDone) else guard.take(output)
    return made


DONE = TurnDone(outcome="completed")
OPEN = started(item("in_progress"))
USAGE = draft("usage.updated", UsageUpdatedData(input_tokens=1))

CASES: dict[str, tuple[Sequence[Draft | TurnDone], list[Draft]]] = {
    "a well-behaved turn passes unchanged": (
        [OPEN, delta(text("a")), completed(item("completed", text("a"))), USAGE, DONE],
        [OPEN, delta(text("a")), completed(item("completed", text("a"))), USAGE, ended("completed")],
    ),
    "a second end is dropped": ([DONE, DONE], [ended("completed")]),
    "turn events of a translator are dropped": ([ended("failed"), DONE], [ended("completed")]),
    "the reason is kept": ([TurnDone(outcome="failed", stop_reason="limit")], [ended("failed", "limit")]),
    "items after the end are recorded": (
        [DONE, OPEN, delta(text("late")), completed(item("completed", text("late")))],
        [ended("completed"), OPEN, delta(text("late")), completed(item("completed", text("late")))],
    ),
    "a message left open is completed with what its deltas said": (
        [
            OPEN,
            delta(ReasoningPart(text="h", visibility="public")),
            delta(ReasoningPart(text="m", visibility="public")),
            *[delta(text(letter)) for letter in "abc"],
            DONE,
        ],
        [
            OPEN,
            delta(ReasoningPart(text="h", visibility="public")),
            delta(ReasoningPart(text="m", visibility="public")),
            *[delta(text(letter)) for letter in "abc"],
            ours(completed(item("completed", ReasoningPart(text="hm", visibility="public"), text("abc")))),
            ended("completed"),
        ],
    ),
    "a message left open fails with its turn": (
        [OPEN, delta(text("a")), TurnDone(outcome="interrupted")],
        [OPEN, delta(text("a")), ours(completed(item("failed", text("a")))), ended("interrupted")],
    ),
    "a tool call left open has failed": (
        [started(item("in_progress", CALL, kind="tool_call")), DONE],
        [
            started(item("in_progress", CALL, kind="tool_call")),
            ours(completed(item("failed", CALL, kind="tool_call"))),
            ended("completed"),
        ],
    ),
    "a delta of an unknown item starts it": (
        [delta(text("a")), delta(text("b"))],
        [ours(started(item("in_progress"))), delta(text("a")), delta(text("b"))],
    ),
    "a completed message without start or delta gets both": (
        [completed(item("completed", text("a"), text("b")))],
        [
            ours(started(item("in_progress"))),
            ours(delta(text("ab"))),
            completed(item("completed", text("a"), text("b"))),
        ],
    ),
    "a started message without a delta gets one": (
        [OPEN, completed(item("completed", text("a")))],
        [OPEN, ours(delta(text("a"))), completed(item("completed", text("a")))],
    ),
    "a completed tool call without a start gets only that": (
        [completed(item("completed", CALL, kind="tool_call"))],
        [
            ours(started(item("in_progress", CALL, kind="tool_call"))),
            completed(item("completed", CALL, kind="tool_call")),
        ],
    ),
    "a second start of an open or finished item is dropped": (
        [OPEN, OPEN, delta(text("a")), completed(item("completed", text("a"))), OPEN],
        [OPEN, delta(text("a")), completed(item("completed", text("a")))],
    ),
    "a delta of a finished item is dropped": (
        [OPEN, delta(text("a")), completed(item("completed", text("a"))), delta(text("b"))],
        [OPEN, delta(text("a")), completed(item("completed", text("a")))],
    ),
    "an item that we closed is not closed again": (
        [OPEN, delta(text("a")), DONE, delta(text("b")), completed(item("completed", text("ab"))), delta(text("c"))],
        [
            OPEN,
            delta(text("a")),
            ours(completed(item("completed", text("a")))),
            ended("completed"),
        ],
    ),
    "an item that the agent completes twice is completed once": (
        [OPEN, delta(text("a")), completed(item("completed", text("a"))), completed(item("completed", text("b")))],
        [OPEN, delta(text("a")), completed(item("completed", text("a")))],
    ),
    "open asks are resolved at the end": (
        [permission(), question(), permission(), DONE],
        [
            permission(),
            question(),
            ours(permission("reject", reason="turn_ended")),
            ours(question("rejected", reason="turn_ended")),
            ended("completed"),
        ],
    ),
    "an ask that the agent resolved itself is not resolved again": (
        [permission(), permission("reject"), permission("reject"), DONE],
        [permission(), permission("reject"), ended("completed")],
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_the_log_gets_what_it_should(name: str) -> None:
    outputs, expected = CASES[name]
    assert run(outputs) == expected


def test_an_answered_ask_is_closed() -> None:
    guard = TurnGuard()
    guard.begin("t")
    guard.take(permission())
    guard.answered("p")
    assert guard.open_asks == ()
    assert guard.done(DONE, FRAME) == [ended("completed")]


def test_cancelled_asks_are_resolved_once_with_the_reason() -> None:
    guard = TurnGuard()
    guard.begin("t")
    guard.take(permission(tool="write"))
    assert guard.cancel_asks("interrupted") == [ours(permission("reject", tool="write", reason="interrupted"))]
    assert guard.cancel_asks("interrupted") == []


def test_a_turn_that_we_end_is_our_own_event() -> None:
    guard = TurnGuard()
    guard.begin("t")
    assert guard.end_turn("failed", "timeout") == [
        Draft(
            "turn.ended",
            TurnEndedData(phase="ended", turn_id="t", outcome="failed", stop_reason="timeout"),
            source="daemon",
            synthetic=True,
        )
    ]
    assert (guard.turn_id, guard.end_turn("failed", "timeout")) == (None, [])


def test_a_process_that_is_gone_leaves_nothing_open() -> None:
    guard = TurnGuard()
    guard.take(OPEN)
    guard.take(permission())
    expected = [ours(completed(item("failed"))), ours(permission("reject", reason="agent_exited"))]
    assert guard.give_up() == expected
    assert guard.give_up() == []


def test_an_endless_message_does_not_grow_without_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guard_module, "MOST_COLLECTED_BYTES", 1000)
    thought = ReasoningPart(text="hm", visibility="public")
    *_, closing, _ = run([OPEN, *[delta(text("x")), delta(text("x")), delta(thought)] * 100, DONE])
    cut = StatusPart(label="cut", detail="Only the beginning is kept here.")
    assert closing == ours(completed(item("completed", text("xx"), thought, cut)))


def test_a_message_that_ends_without_a_content_has_that_of_its_deltas() -> None:
    *_, closing, _ = run([OPEN, delta(text("good ")), delta(text("day")), completed(item("completed")), DONE])
    assert closing == completed(item("completed", text("good day")))


def test_output_after_the_end_of_its_call_says_that_it_is_late() -> None:
    guard = TurnGuard()
    guard.begin("t")
    call = item("in_progress", CALL, kind="tool_call")

    def output() -> Draft:
        return draft("terminal.output", TerminalOutputData(stream="stdout", data="tick", item_id="i"))

    given = [started(call), output(), completed(msgspec.structs.replace(call, status="completed")), output()]
    told = [each for one in given for each in guard.take(one)]
    late = [each.data.late for each in told if isinstance(each.data, TerminalOutputData)]
    assert late == [False, True]
