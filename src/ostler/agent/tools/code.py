"""Tools that are programs of a session or its template: they run where `run-sandbox` runs, or not at all."""

from collections.abc import Iterable
from functools import partial

from ostler.agent.tools.foreign import Arguments, ForeignTool
from ostler.agent.tools.sandbox import run_code
from ostler.agent.tools.tool import CallContext, Output
from ostler.wire.providers import CodeTool


def code_tools(declared: Iterable[CodeTool]) -> dict[str, ForeignTool]:
    """Those of a session: they can change nothing, so nobody is asked."""
    return {
        tool.name: ForeignTool(
            name=tool.name,
            description=tool.description,
            schema=tool.input_schema,
            input=Arguments,
            run=partial(_run, tool),
        )
        for tool in declared
    }


async def _run(tool: CodeTool, given: Arguments, context: CallContext) -> Output:
    return await run_code(tool.language, tool.code, context, bytes(given.json))
