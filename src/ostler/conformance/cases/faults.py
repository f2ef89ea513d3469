"""Cases about what goes wrong: interrupts and providers that fail."""

from ostler.base.errors import AgentExited
from ostler.conformance.cases.claims import Claims
from ostler.conformance.driven import Driven
from ostler.conformance.outcomes import answer_text, ends, expect, items, of_type
from ostler.conformance.scripts import sleeping
from ostler.conformance.stage import Stage
from ostler.wire.running import Draft

CLAIMS = Claims()


@CLAIMS.case("interrupt.text")
async def interrupt_text(stage: Stage) -> None:
    """The turn ends early and the next one is as good as any."""
    async with stage.agent() as agent:
        since = await agent.send("slow 200 0.1")
        await agent.world.answers("slow 200", lambda: _has_grown(agent.sink.drafts[since:]))
        await agent.connection.interrupt()
        ends(await agent.ended(since), "interrupted")
        then = answer_text(await _next_turn(stage, agent, "say still here"))
        expect("still here" in then, f"the next turn says {then!r}")


def _has_grown(drafts: list[Draft]) -> bool:
    return any(draft.type in {"item.delta", "item.started"} for draft in drafts)


async def _next_turn(stage: Stage, agent: Driven, script: str) -> list[Draft]:
    """One more turn; an agent that did not obey was stopped, and a new process goes on, as in a session."""
    try:
        return await agent.turn(script)
    except AgentExited:
        async with stage.agent(resume=agent.sink.native_session_id, start=2) as again:
            return await again.turn(script)


@CLAIMS.scene("interrupt.tool")
async def interrupt_tool(agent: Driven) -> None:
    """The turn ends early and leaves nothing open."""
    since = await agent.send(f"bash {sleeping(61.7, mark=agent.path('running'))}", "say Done.")
    await agent.sink.called("61.7", since)
    await agent.world.appears("running")
    await agent.connection.interrupt()
    events = await agent.ended(since)
    ends(events, "interrupted")
    still_open = [item.item_id for item in items(events) if item.status == "in_progress"]
    expect(not still_open, f"items are still open: {still_open}")


@CLAIMS.scene("error.401")
async def error_401(agent: Driven) -> None:
    """The turn fails and says that it is about credentials."""
    events = await agent.turn("error 401")
    ends(events, "failed")
    errors = of_type(events, "error")
    expect(any("401" in str(data) or "auth" in str(data).lower() for data in errors), f"the errors are {errors}"[:300])


@CLAIMS.scene("error.500", turn_timeout_seconds=20.0)
async def error_500(agent: Driven) -> None:
    """The turn fails and says something; for agents that try for minutes the turn's own limit is the bound."""
    events = await agent.turn("error 500")
    ends(events, "failed")
    expect(of_type(events, "error"), "no error was reported")


@CLAIMS.scene("error.recovers")
async def error_recovers(agent: Driven) -> None:
    """The second try is the one that counts."""
    events = await agent.turn("error 500 1 ;; say Recovered.")
    ends(events, "completed")
    expect("Recovered." in answer_text(events), f"the text is {answer_text(events)!r}")
