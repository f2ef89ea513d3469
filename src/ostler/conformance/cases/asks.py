"""Cases about what an agent asks people."""

from ostler.conformance.cases.claims import Claims
from ostler.conformance.driven import Driven
from ostler.conformance.outcomes import answer_text, ends, expect, of_type, only
from ostler.conformance.sink import keep_waiting, reject

CLAIMS = Claims()


@CLAIMS.scene("permission.allow")
async def permission_allow(agent: Driven) -> None:
    """Asked, allowed, done."""
    events = await agent.turn(f"bash touch {agent.path('allowed')}", "say Done.")
    ends(events, "completed")
    expect(of_type(events, "permission.requested"), "nobody was asked")
    expect(agent.world.content("allowed") is not None, "the allowed command was not run")


@CLAIMS.scene("permission.reject")
async def permission_reject(agent: Driven) -> None:
    """Asked, rejected, not done, and the model knows why."""
    events = await agent.turn(f"bash touch {agent.path('forbidden')}", on_ask=reject("not on a Sunday"))
    asked = only(of_type(events, "permission.requested"), "permission asks")
    expect(asked.action, "the ask does not say for what")
    expect(agent.world.content("forbidden") is None, "the rejected command was run")
    expect(agent.world.reached_model("not on a Sunday", answer_text(events)), "the reason did not reach the model")


@CLAIMS.scene("permission.bypass", permission_mode="bypass")
async def permission_bypass(agent: Driven) -> None:
    """Done without asking."""
    events = await agent.turn(f"bash touch {agent.path('bypassed')}", "say Done.", on_ask=keep_waiting)
    expect(not of_type(events, "permission.requested"), "somebody was asked")
    expect(agent.world.content("bypassed") is not None, "the command was not run")


@CLAIMS.scene("question")
async def question(agent: Driven) -> None:
    """The first option is picked and the model hears it."""
    events = await agent.turn("ask Which colour? | Blue | Red")
    ends(events, "completed")
    asked = only(of_type(events, "question.requested"), "questions")
    expect("Which colour?" in asked.prompt, f"the question is {asked.prompt!r}")
    expect(set(asked.options) >= {"Blue", "Red"}, f"the options are {asked.options}")
    expect("Blue" in answer_text(events), f"the model, which repeats the answer, says {answer_text(events)!r}")


@CLAIMS.scene("question.reject")
async def question_reject(agent: Driven) -> None:
    """The turn goes on or ends, once."""
    events = await agent.turn("ask Which colour? | Blue | Red", on_ask=reject("none of them"))
    expect(of_type(events, "question.requested"), "nobody was asked")
    only(of_type(events, "turn.ended"), "ends of the turn")


@CLAIMS.scene("plan.approve", permission_mode="plan")
async def plan_approve(agent: Driven) -> None:
    """The plan is asked about, approved, and the turn goes on."""
    events = await agent.turn("plan 1. Look. 2. Change it.", "say Going on.")
    ends(events, "completed")
    asked = only(of_type(events, "question.requested"), "questions about the plan")
    shown = asked.prompt + str(asked.metadata) + str(asked.questions)
    expect("Look" in shown, f"the plan is not in the question: {shown}"[:300])


@CLAIMS.scene("interrupt.ask")
async def interrupt_ask(agent: Driven) -> None:
    """The ask is resolved as a rejection and nothing is done."""
    agent.sink.on_ask = keep_waiting
    since = await agent.send(f"bash touch {agent.path('never')}", "say Done.")
    await agent.sink.until(lambda draft: draft.type == "permission.requested", "an ask", since)
    await agent.connection.interrupt()
    events = await agent.ended(since)
    ends(events, "interrupted")
    resolved = [data.status for data in of_type(events, "permission.resolved")]
    expect(resolved == ["reject"], f"the ask was resolved as {resolved}")
    expect(agent.world.content("never") is None, "the command was run")
