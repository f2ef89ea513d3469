"""Sub-agents: a part of the work in a context of its own."""

from typing import Annotated

import msgspec

from ostler.agent.tools.tool import CallContext, Input, Output, Tool


class TaskInput(Input, frozen=True, kw_only=True):
    """What `task` takes."""

    description: Annotated[str, msgspec.Meta(min_length=1, description="What it is about, in three to five words")]
    prompt: Annotated[
        str, msgspec.Meta(min_length=1, description="The whole task: what is known, what to do, and what to answer")
    ]
    may_change: Annotated[
        bool, msgspec.Meta(description="Whether it may change files and run commands; otherwise it only looks")
    ] = False


async def _task(given: TaskInput, context: CallContext) -> Output:
    return await context.delegate(given.prompt, given.may_change)


TASK = Tool(
    name="task",
    description=(
        "Hand a part of the work to a sub-agent. It knows nothing of this conversation, only what `prompt` says, and "
        "only its last message comes back. Good for a search through many files whose contents you do not need, and "
        "for several independent questions: calls that only look run side by side, up to four. Not for what one or two "
        "calls of other tools can do."
    ),
    input=TaskInput,
    run=_task,
    is_alone=lambda given: given.may_change,
)
