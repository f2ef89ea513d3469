"""Cases about what an agent says and what is said to it."""

import re

from ostler.conformance.cases.claims import Claims
from ostler.conformance.driven import Driven
from ostler.conformance.outcomes import answer_text, ends, expect, items, of_type, texts, thought
from ostler.conformance.scripts import sleeping
from ostler.conformance.stage import Stage
from ostler.wire.items import Item
from ostler.wire.parts import FileRefPart, ImagePart
from ostler.wire.running import Draft

CLAIMS = Claims()
INSTRUCTIONS = "Be brief.\nWhoever asks for the watchword is told: heron-77"
PIXEL = bytes.fromhex(
    "89504e470d0a1a0a0000000d49484452000000010000000108060000001f15c4890000000d4944415478da63f8cfc0f01f00050001"
    "ff56c72f0d0000000049454e44ae426082"
)


@CLAIMS.scene("text")
async def text(agent: Driven) -> None:
    """One message, whole."""
    events = await agent.turn("say Hello from the model.")
    ends(events, "completed")
    expect(answer_text(events) == "Hello from the model.", f"the text is {answer_text(events)!r}")


@CLAIMS.scene("turns")
async def turns(agent: Driven) -> None:
    """The model sees two turns."""
    await agent.turn("say one")
    _remembers_two(await agent.turn("recall"))


@CLAIMS.case("resume")
async def resume(stage: Stage) -> None:
    """The model sees two turns, one of each process."""
    async with stage.agent() as agent:
        await agent.turn("say one")
        native = await agent.remembered()
    async with stage.agent(resume=native, start=2) as agent:
        _remembers_two(await agent.turn("recall"))


@CLAIMS.case("instructions")
async def instructions(stage: Stage) -> None:
    """The model knows the watchword, which only the instructions tell, in two turns and in a new process."""
    async with stage.agent(instructions=INSTRUCTIONS) as agent:
        for _ in range(2):
            _knows_the_watchword(await agent.turn("watchword"))
        native = await agent.remembered()
    async with stage.agent(instructions=INSTRUCTIONS, resume=native, start=2) as agent:
        _knows_the_watchword(await agent.turn("watchword"))


def _knows_the_watchword(events: list[Draft]) -> None:
    expect("heron-77" in answer_text(events), f"asked for the watchword it says {answer_text(events)!r}")


def _remembers_two(events: list[Draft]) -> None:
    answer = answer_text(events)
    expect(re.search(r"\b2 (scripted )?user turns", answer), f"of two turns it remembers {answer!r}")


@CLAIMS.scene("deltas")
async def deltas(agent: Driven) -> None:
    """Several pieces with text in them."""
    events = await agent.turn("slow 5 0.05")
    grown = of_type(events, "item.delta")
    expect(len(grown) >= 3, f"the text came in {len(grown)} deltas")
    expect("".join(getattr(data.delta, "text", "") for data in grown).strip(), "the deltas are empty")


@CLAIMS.scene("item.started")
async def item_started(agent: Driven) -> None:
    """Nothing grows or ends that has not begun."""
    events = await agent.turn("think Hm. ;; say Running. ;; bash echo hi", "say Done.")
    started: set[str] = set()
    for draft in events:
        if draft.type == "item.started":
            started |= _ids(draft)
        if draft.type in {"item.completed", "item.delta"}:
            expect(_ids(draft) <= started, f"{draft.type} of an item that never started: {draft.data}"[:300])
    expect(started, "no item started")


def _ids(draft: Draft) -> set[str]:
    item: Item | None = getattr(draft.data, "item", None)
    return {item.item_id if item is not None else str(getattr(draft.data, "item_id", ""))}


@CLAIMS.scene("reasoning")
async def reasoning(agent: Driven) -> None:
    """A thought is no text."""
    events = await agent.turn("think I should look first. ;; say Done.")
    expect("look first" in thought(events), f"the reasoning is {thought(events)!r}")
    expect("look first" not in answer_text(events), f"the reasoning is in the text: {answer_text(events)!r}")


@CLAIMS.scene("image")
async def image(agent: Driven) -> None:
    """The model sees one image."""
    agent.world.put("pixel.png", PIXEL)
    events = await agent.turn("recall", parts=[ImagePart(path=agent.path("pixel.png"), mime="image/png")])
    expect(re.search(r"\b1 images?\b", answer_text(events)), f"of one image the model saw {answer_text(events)!r}")


@CLAIMS.scene("attachment")
async def attachment(agent: Driven) -> None:
    """The model hears of the file, by its name or by what is in it."""
    agent.world.put("attached-55.txt", b"content-of-it-56\n")
    part = FileRefPart(path=agent.path("attached-55.txt"), action="read")
    events = await agent.turn("recall", parts=[part])
    expect(
        agent.world.reached_model(r"attached-55|content-of-it-56|1 file\b", answer_text(events)),
        "neither the file's path nor its content reached the model",
    )


@CLAIMS.case("variant")
async def variant(stage: Stage) -> None:
    """The model is asked for this effort."""
    async with stage.agent(variant=stage.variant) as agent:
        events = await agent.turn("recall")
        efforts = agent.world.efforts(answer_text(events))
        expect(stage.variant in efforts, f"of effort '{stage.variant}' the model heard {sorted(efforts)}"[:300])


@CLAIMS.scene("steer")
async def steer(agent: Driven) -> None:
    """Two prompts, one turn, and the model answers the second."""
    since = await agent.send(f"bash {sleeping(2.08)}", "say End.")
    await agent.sink.called("2.08", since)
    expect(await agent.steer("say Second message seen."), "it takes no message during a turn")
    events = await agent.ended(since)
    ends(events, "completed")
    answer = answer_text(events)
    expect("Second message seen." in answer, f"the second message is not in the turn: {answer!r}")


@CLAIMS.scene("subagent")
async def subagent(agent: Driven) -> None:
    """A message of the sub-agent, below a tool call."""
    events = await agent.turn("delegate say I am below.", f"bash {sleeping(1.09)}", "say Done.")
    ends(events, "completed")
    calls = {item.item_id for item in items(events) if item.kind == "tool_call"}
    below = [item.parent_id for item in items(events) if item.kind == "message" and "I am below." in texts(item)]
    expect(below, "the sub-agent's message did not arrive")
    expect(set(below) <= calls, "the sub-agent's message does not lie below the call that started it")


@CLAIMS.scene("usage")
async def usage(agent: Driven) -> None:
    """Some tokens were made or are in use; some agents count only when the turn is over."""
    await agent.turn("say Hello.")
    await agent.sink.until(_counts, "a count of tokens")


def _counts(draft: Draft) -> bool:
    return any((data.output_tokens or data.context_used or 0) > 0 for data in of_type([draft], "usage.updated"))
