"""The model's list of what it wants to do, which people see."""

from typing import Annotated, Literal

import msgspec

from ostler.agent.tools.tool import CallContext, Input, Output, Tool
from ostler.wire.own_agent import Todo


class TodoItem(Input, frozen=True, kw_only=True):
    """One step."""

    content: Annotated[str, msgspec.Meta(min_length=1, description="What is to be done, in a few words")]
    status: Annotated[
        Literal["pending", "in_progress", "completed"], msgspec.Meta(description="At most one is in progress")
    ] = "pending"


class TodoInput(Input, frozen=True, kw_only=True):
    """What `todo` takes."""

    items: Annotated[tuple[TodoItem, ...], msgspec.Meta(max_length=50, description="The whole list, in its order")]


async def _todo(given: TodoInput, context: CallContext) -> Output:
    plan = tuple(Todo(content=item.content, status=item.status) for item in given.items)
    done = sum(item.status == "completed" for item in given.items)
    return Output(text=f"Noted: {done} of {len(plan)} done.", plan=plan)


TODO = Tool(
    name="todo",
    description=(
        "Keep a list of the steps of a larger task, which people see. Give the whole list each time, with what is "
        "pending, in progress (one at a time) and completed; mark a step as completed as soon as it is. For tasks of "
        "three steps or more; not for what is done in one go."
    ),
    input=TodoInput,
    run=_todo,
)
