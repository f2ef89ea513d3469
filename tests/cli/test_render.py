"""Recorded events as text."""

import json
from typing import Any

import pytest

from ostler.cli.terminal.render import Renderer
from ostler.cli.terminal.text import ASCII, UNICODE, cut, marks_for
from ostler.wire.events import decode_event

LIMIT = {"until": "2026-11-17T03:18:31.000Z", "attempt": 1, "acted": False}


def event(kind: str, data: dict[str, Any], second: int = 0) -> bytes:
    envelope = {"event_id": "e", "sequence": 1, "session_id": "s", "source": "agent", "synthetic": False}
    return json.dumps({"type": kind, "time": f"2026-01-01T00:00:{second:02}.000Z", **envelope, "data": data}).encode()


def shown(*events: bytes, **options: Any) -> str:
    renderer = Renderer(**{"colour": False, **options})
    return "".join(renderer.feed(decode_event(each)) for each in events) + renderer.close()


def item(kind: str, *content: dict[str, Any], item_id: str = "i", **more: Any) -> dict[str, Any]:
    return {"item": {"item_id": item_id, "kind": kind, "status": "completed", "content": list(content), **more}}


def delta(kind: str, text: str) -> bytes:
    part = {"type": kind, "text": text} | ({"visibility": "public"} if kind == "reasoning" else {})
    return event("item.delta", {"item_id": "i", "delta": part})


def text(words: str) -> dict[str, Any]:
    return {"type": "text", "text": words}


CALL = {"type": "tool_call", "name": "shell", "arguments": '{"command": "ls"}', "call_id": "c"}
DONE = event("item.completed", item("message", text("Hello there"), role="assistant"))


def result(output: str, **more: Any) -> bytes:
    part = {"type": "tool_result", "call_id": "c", "output": output}
    return event("item.completed", item("tool_result", part, item_id="r", parent_id="i", **more))


@pytest.mark.parametrize(
    ("events", "expected"),
    [
        ([delta("text", "Hello "), delta("text", "there"), DONE], "Hello there\n"),
        ([DONE], "Hello there\n"),
        ([delta("reasoning", "Hm."), delta("text", "Hello"), DONE], "Hm.\nHello\n"),
        ([event("item.completed", item("message", text("hi"), role="user"))], ""),
        ([event("item.started", item("tool_call", CALL)), result("a\nb\n")], "● shell ls\n  ✓ a (+1 lines)\n"),
        (
            [
                event("item.started", item("tool_call", {**CALL, "arguments": ""})),
                *(
                    event("item.delta", {"item_id": "i", "delta": {**CALL, "arguments": piece}})
                    for piece in ('{"command":', ' "ls"}')
                ),
                event("terminal.output", {"stream": "stdout", "data": "a\n", "item_id": "i"}),
                event("item.completed", item("tool_call", CALL)),
            ],
            "● shell ls\n  │ a\n",
        ),
        ([event("item.completed", item("tool_call", CALL)), result("no", status="failed")], "● shell ls\n  ✗ no\n"),
        (
            [
                event("item.started", item("tool_call", CALL)),
                event("terminal.output", {"stream": "stdout", "data": "a\nb", "item_id": "i"}),
                event("terminal.output", {"stream": "stderr", "data": "c\n", "item_id": "i"}),
                result("a\nbc\n"),
            ],
            "● shell ls\n  │ a\n  │ bc\n  ✓ done\n",
        ),
        (
            [
                delta("text", "so"),
                event("file.changed", {"path": "x", "action": "modified", "diff": "--- x\n+++ x\n-a\n+b\n+c"}),
            ],
            "so\n  ± x modified +2 -1\n",
        ),
        (
            [
                event(
                    "plan.updated",
                    {"entries": [{"content": "a", "status": "in_progress"}, {"content": "b", "status": "pending"}]},
                ),
                event(
                    "plan.updated",
                    {"entries": [{"content": "a", "status": "completed"}, {"content": "b", "status": "pending"}]},
                ),
            ],
            "Plan\n  ▸ a\n  ☐ b\n  ✓ a\n",
        ),
        (
            [
                event("turn.started", {"phase": "started"}, 1),
                event(
                    "usage.updated",
                    {"input_tokens": 1200, "output_tokens": 3, "cost": {"amount": 0.5, "currency": "USD"}},
                ),
                event("turn.ended", {"phase": "ended", "outcome": "completed"}, 3),
            ],
            "✓ completed, 2.0 s, 1,200 in / 3 out tokens, 0.5000 USD\n",
        ),
        ([event("turn.ended", {"phase": "ended", "outcome": "failed"})], "✗ failed\n"),
        (
            [
                event(
                    "permission.requested",
                    {"permission_id": "p", "action": "rm x", "status": "requested", "tool": "shell"},
                ),
                event(
                    "permission.resolved", {"permission_id": "p", "action": "rm x", "status": "reject", "message": "no"}
                ),
            ],
            "? May I? shell: rm x\n  rejected: no\n",
        ),
        (
            [
                event(
                    "permission.requested",
                    {"permission_id": "p", "action": "Write: /a.txt", "status": "requested", "tool": "Write"},
                )
            ],
            "? May I? Write: /a.txt\n",
        ),
        ([event("error", {"message": "Out of hay"})], "✗ Out of hay\n"),
        ([event("notice", {"severity": "info", "message": "Hm"})], "! Hm\n"),
        ([event("agent.unparsed", {"error": "bad", "location": "$"})], "! Not understood: bad\n"),
        ([event("session.status", {"status": "paused"})], "  session is paused\n"),
        (
            [
                event("session.limit", {**LIMIT, "status": "reached", "waits": True}),
                event("session.limit", {**LIMIT, "status": "reached", "waits": False}),
                event("session.limit", {**LIMIT, "status": "over", "waits": False}),
            ],
            "! waits for its limit until 2026-11-17 03:18 UTC\n! limited until 2026-11-17 03:18 UTC\n"
            "! The limit is over; going on.\n",
        ),
        ([event("dream.began", {})], ""),
        ([event("error", {"unexpected": "shape"})], ""),
    ],
)
def test_events_become_these_lines(events: list[bytes], expected: str) -> None:
    assert shown(*events) == expected


def test_prompts_are_shown_when_others_may_have_typed_them() -> None:
    prompt = event("item.completed", item("message", text("hi"), role="user"))
    assert shown(prompt, show_prompts=True) == "> hi\n"


def test_an_agent_cannot_command_the_terminal() -> None:
    nasty = "a\x1b]0;title\x07b\x1b[2Jc\x07\x9b1md\te\n"
    assert shown(delta("text", nasty)) == "abc1md\te\n"


def test_colour_is_added_only_when_wanted() -> None:
    assert shown(event("error", {"message": "x"}), colour=True) == "\x1b[31m✗ x\x1b[0m\n"


def test_marks_fit_the_encoding() -> None:
    assert [marks_for(name) for name in ("utf-8", "latin-1", "no-such", None)] == [UNICODE, ASCII, ASCII, ASCII]


def test_long_lines_are_cut() -> None:
    assert cut("word " * 100, 20) == "word word word wo..."
