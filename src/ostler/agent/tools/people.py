"""Asking the people of the session."""

from typing import Annotated

import msgspec

from ostler.agent.tools.tool import CallContext, Input, Output, Tool


class AskInput(Input, frozen=True, kw_only=True):
    """What `ask_user` takes."""

    question: Annotated[str, msgspec.Meta(min_length=1, description="What you want to know, as one question")]
    options: Annotated[
        tuple[str, ...],
        msgspec.Meta(max_length=10, description="Answers to choose from; people may say something else"),
    ] = ()
    multi_select: Annotated[bool, msgspec.Meta(description="Whether several of them may be chosen")] = False


class PlanInput(Input, frozen=True, kw_only=True):
    """What `exit_plan_mode` takes."""

    plan: Annotated[str, msgspec.Meta(min_length=1, description="What you want to do, step by step, in Markdown")]


async def _ask(given: AskInput, context: CallContext) -> Output:
    answer = await context.people.answer(given.question, given.options, multi_select=given.multi_select)
    if isinstance(answer, str):
        why = f": {answer}" if answer else "."
        return Output(text=f"Nobody wanted to answer this{why}", failed=True)
    return Output(text=f"The answer is: {', '.join(answer)}")


async def _plan(given: PlanInput, context: CallContext) -> Output:
    objection = await context.people.approve(given.plan)
    if objection is None:
        return Output(text="The plan is approved and you have left plan mode. Carry it out now.")
    return Output(text=f"The plan is not approved. {objection}".rstrip(), failed=True)


ASK = Tool(
    name="ask_user",
    description=(
        "Ask the people who gave you the task, and wait for their answer. Only for what you cannot find out yourself "
        "and cannot decide sensibly: each question keeps somebody waiting."
    ),
    input=AskInput,
    run=_ask,
)
PLAN = Tool(
    name="exit_plan_mode",
    description=(
        "Show your plan to the people who gave you the task when you know enough to carry it out. You leave plan mode "
        "if they approve it. Only while you are in plan mode."
    ),
    input=PlanInput,
    run=_plan,
)
