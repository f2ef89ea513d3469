"""Tools that others bring: they come with a JSON schema, and what they take is passed on as the model wrote it."""

from collections.abc import Iterable
from typing import Any

import msgspec

from ostler.agent.models.asking import NO_JSON, ToolSpec
from ostler.agent.operations import ToolFailed
from ostler.agent.tools.shell import Printed
from ostler.agent.tools.tool import CallContext, Input, Output, Tool
from ostler.wire.providers import ClientTool


class Arguments(Input, frozen=True, kw_only=True):
    """What a model gives such a tool: any object."""

    json: msgspec.Raw


class ForeignTool(Tool[Arguments], frozen=True, kw_only=True):
    """A tool of somebody else."""

    schema: dict[str, Any]

    def spec(self) -> ToolSpec:
        """As the model sees it."""
        schema = {"type": "object", "properties": {}, **self.schema}
        schema.pop("$schema", None)
        return ToolSpec(name=self.name, description=self.description, schema=schema)

    def read(self, text: str) -> Arguments:
        """The object that a model wrote. Raises ToolFailed."""
        try:
            msgspec.json.decode(text.strip() or "{}", type=dict[str, Any])
        except (*NO_JSON, UnicodeError) as error:
            raise ToolFailed(f"The input of `{self.name}` cannot be used: {error}.") from error
        return Arguments(json=msgspec.Raw(text.strip() or "{}"))

    def shown(self, given: Arguments) -> msgspec.Raw:
        """The input, for people who are asked."""
        return given.json


def client_tools(declared: Iterable[ClientTool]) -> dict[str, ForeignTool]:
    """Those that the client of the session has: it says itself what may be done, so nobody else is asked."""
    return {
        tool.name: ForeignTool(
            name=tool.name,
            description=tool.description,
            schema=tool.input_schema,
            input=Arguments,
            run=_by_client,
            is_alone=lambda _: True,
        )
        for tool in declared
    }


async def _by_client(given: Arguments, context: CallContext) -> Output:
    return Output(text=shortened(await context.people.result(given.json)))


def shortened(text: str) -> str:
    """The beginning and the end of a long answer."""
    printed = Printed()
    printed.add(text)
    return printed.whole() or "(no output)"
