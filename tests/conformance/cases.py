"""One coroutine per behaviour: what to script, what to answer, what must come out. The agent's name appears nowhere."""

import sys
from collections.abc import Awaitable, Callable
from pathlib import Path

from ostler.wire.parts import ImagePart
from tests.conformance.driver import (
    Ask,
    Driven,
    allow,
    calls,
    items,
    keep_waiting,
    of_type,
    outcome,
    reject,
    results,
    said,
    thought,
)

Case = Callable[[Driven], Awaitable[None]]
CASES: dict[str, Case] = {}
PIXEL = bytes.fromhex(
    "89504e470d0a1a0a0000000d49484452000000010000000108060000001f15c4890000000d4944415478da63f8cfc0f01f00050001"
    "ff56c72f0d0000000049454e44ae426082"
)
MCP_SERVER = str(Path(__file__).with_name("mcp_echo.py"))
PYTHON = sys.executable


def claims(behaviour: str) -> Callable[[Case], Case]:
    """This case shows that behaviour."""

    def register(case: Case) -> Case:
        CASES[behaviour] = case
        return case

    return register


@claims("text")
async def text(agent: Driven) -> None:
    events = await agent.turn("say Hello from the model.")
    assert said(events) == "Hello from the model."
    assert outcome(events) == "completed"
    assert of_type(events, "agent.unparsed") == []


@claims("turns")
async def turns(agent: Driven) -> None:
    await agent.turn("say one")
    assert "2 scripted user turns" in said(await agent.turn("recall"))


@claims("deltas")
async def deltas(agent: Driven) -> None:
    events = await agent.turn("slow 5 0.05")
    grown = of_type(events, "item.delta")
    assert len(grown) >= 3
    assert "".join(getattr(data.delta, "text", "") for data in grown).strip() != ""


@claims("item.started")
async def item_started(agent: Driven) -> None:
    events = await agent.turn("think Hm. ;; say Running. ;; bash echo hi", "say Done.")
    started: set[str] = set()
    for draft in events:
        if draft.type == "item.started":
            started.add(draft.data.item.item_id)  # type: ignore[attr-defined]  # follows from the type
        if draft.type == "item.completed":
            assert draft.data.item.item_id in started  # type: ignore[attr-defined]  # follows from the type
        if draft.type == "item.delta":
            assert draft.data.item_id in started  # type: ignore[attr-defined]  # follows from the type


@claims("reasoning")
async def reasoning(agent: Driven) -> None:
    events = await agent.turn("think I should look first. ;; say Done.")
    assert "look first" in thought(events)
    assert "look first" not in said(events)


@claims("tool.call")
async def tool_call(agent: Driven) -> None:
    events = await agent.turn("bash echo marker-42", "say Done.")
    (call,) = calls(events)
    assert "marker-42" in call.arguments
    assert call.name


@claims("tool.result")
async def tool_result(agent: Driven) -> None:
    events = await agent.turn("bash echo marker-42", "say Done.")
    (call,) = calls(events)
    answers = [result for result in results(events) if result.call_id == call.call_id]
    assert answers
    assert "marker-42" in answers[-1].output


@claims("tool.failed")
async def tool_failed(agent: Driven) -> None:
    events = await agent.turn("bash cat /no/such/file-77", "say Done.")
    told = " ".join(result.output for result in results(events))
    failed = any(item.status == "failed" for item in items(events) if item.kind.startswith("tool"))
    assert failed or "No such file" in told


@claims("command.output")
async def command_output(agent: Driven) -> None:
    events = await agent.turn("bash for i in 1 2 3; do echo tick-$i; sleep 0.4; done", "say Done.")
    printed = "".join(data.data for data in of_type(events, "terminal.output"))
    assert "tick-2" in printed


@claims("file.write")
async def file_write(agent: Driven) -> None:
    target = agent.cwd / "notes.txt"
    events = await agent.turn(f"write {target} hello\\n", "say Done.")
    assert target.read_text().strip() == "hello"
    assert any(str(data.path).endswith("notes.txt") for data in of_type(events, "file.changed"))


@claims("file.edit")
async def file_edit(agent: Driven) -> None:
    target = agent.cwd / "notes.txt"
    target.write_text("one\ntwo\nthree\n")
    events = await agent.turn(f"read {target}", f"edit {target} two => TWO", "say Done.")
    assert "TWO" in target.read_text()
    diffs = [data.diff for data in of_type(events, "file.changed") if data.diff]
    assert any("+TWO" in diff and "-two" in diff for diff in diffs)


@claims("permission.allow")
async def permission_allow(agent: Driven) -> None:
    target = agent.cwd / "allowed"
    events = await agent.turn(f"bash touch {target}", "say Done.")
    assert of_type(events, "permission.requested")
    assert target.exists()
    assert outcome(events) == "completed"


@claims("permission.reject")
async def permission_reject(agent: Driven) -> None:
    target = agent.cwd / "forbidden"
    events = await agent.turn(f"bash touch {target}", on_ask=reject("not on a Sunday"))
    (asked,) = of_type(events, "permission.requested")
    assert asked.action
    assert not target.exists()
    assert "not on a Sunday" in str(agent.model.requests[-1])


@claims("permission.bypass")
async def permission_bypass(agent: Driven) -> None:
    target = agent.cwd / "bypassed"
    events = await agent.turn(f"bash touch {target}", "say Done.", on_ask=keep_waiting)
    assert of_type(events, "permission.requested") == []
    assert target.exists()


@claims("question")
async def question(agent: Driven) -> None:
    asked: list[Ask] = []

    def pick_second(ask: Ask) -> object:
        asked.append(ask)
        return allow(ask)

    events = await agent.turn("ask Which colour? | Blue | Red", on_ask=pick_second)  # type: ignore[arg-type]  # an Answer
    (found,) = of_type(events, "question.requested")
    assert "Which colour?" in found.prompt
    assert set(found.options) >= {"Blue", "Red"}
    assert "Blue" in str(agent.model.requests[-1])
    assert outcome(events) == "completed"


@claims("question.reject")
async def question_reject(agent: Driven) -> None:
    events = await agent.turn("ask Which colour? | Blue | Red", on_ask=reject("none of them"))
    assert of_type(events, "question.requested")
    assert len(of_type(events, "turn.ended")) == 1


@claims("plan.approve")
async def plan_approve(agent: Driven) -> None:
    events = await agent.turn("plan 1. Look. 2. Change it.", "say Going on.")
    (found,) = of_type(events, "question.requested")
    assert "Look" in found.prompt + str(found.metadata) + str(found.questions)
    assert outcome(events) == "completed"


@claims("image")
async def image(agent: Driven) -> None:
    path = agent.cwd / "pixel.png"
    path.write_bytes(PIXEL)
    events = await agent.turn("recall", parts=[ImagePart(path=str(path), mime="image/png")])
    assert "1 images" in said(events)


@claims("mcp")
async def mcp(agent: Driven) -> None:
    events = await agent.turn('tool shout {"text": "quiet"}', "say Done.")
    assert "SHOUT:QUIET" in str(results(events)) + str(agent.model.requests[-1])


@claims("interrupt.text")
async def interrupt_text(agent: Driven) -> None:
    since = await agent.send("slow 200 0.1")
    await agent.sink.until(lambda draft: draft.type in {"item.delta", "item.started"}, since)
    await agent.connection.interrupt()
    assert outcome(await agent.ended(since)) == "interrupted"
    assert "still here" in said(await agent.turn("say still here"))


@claims("interrupt.tool")
async def interrupt_tool(agent: Driven) -> None:
    since = await agent.send(f"bash {PYTHON} -c 'import time; time.sleep(61.7)'", "say Done.")
    await agent.sink.until(lambda draft: draft.type == "item.started" and "61.7" in str(draft.data), since)
    await agent.connection.interrupt()
    events = await agent.ended(since)
    assert outcome(events) == "interrupted"
    open_items = {item.item_id for item in items(events) if item.status == "in_progress"}
    assert open_items == set()


@claims("interrupt.ask")
async def interrupt_ask(agent: Driven) -> None:
    agent.sink.on_ask = keep_waiting
    since = await agent.send(f"bash touch {agent.cwd / 'never'}", "say Done.")
    await agent.sink.until(lambda draft: draft.type == "permission.requested", since)
    await agent.connection.interrupt()
    events = await agent.ended(since)
    assert outcome(events) == "interrupted"
    assert [data.status for data in of_type(events, "permission.resolved")] == ["reject"]
    assert not (agent.cwd / "never").exists()


@claims("error.401")
async def error_401(agent: Driven) -> None:
    events = await agent.turn("error 401")
    assert outcome(events) == "failed"
    assert any("401" in str(data) or "auth" in str(data).lower() for data in of_type(events, "error"))


@claims("error.500")
async def error_500(agent: Driven) -> None:
    events = await agent.turn("error 500")
    assert outcome(events) == "failed"
    assert of_type(events, "error")


@claims("error.recovers")
async def error_recovers(agent: Driven) -> None:
    events = await agent.turn("error 500 1 ;; say Recovered.")
    assert outcome(events) == "completed"
    assert "Recovered." in said(events)


@claims("usage")
async def usage(agent: Driven) -> None:
    events = await agent.turn("say Hello.")
    assert any((data.output_tokens or data.context_used or 0) > 0 for data in of_type(events, "usage.updated"))
