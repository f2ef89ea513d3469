"""Cases about what an agent does: tools, commands and files."""

import sys
from pathlib import Path

from ostler.conformance.cases.claims import Claims
from ostler.conformance.driven import Driven
from ostler.conformance.outcomes import calls, expect, items, of_type, only, results
from ostler.wire.providers import StdioMcpServer

CLAIMS = Claims()
MCP_SERVER = StdioMcpServer(command=sys.executable, args=(str(Path(__file__).parents[1] / "mcp_echo.py"),))


@CLAIMS.scene("tool.call")
async def tool_call(agent: Driven) -> None:
    """One call with a name and the command."""
    call = only(calls(await agent.turn("bash echo marker-42", "say Done.")), "tool calls")
    expect("marker-42" in call.arguments, f"the arguments are {call.arguments!r}")
    expect(call.name, "the call has no name")


@CLAIMS.scene("tool.result")
async def tool_result(agent: Driven) -> None:
    """The output, under the id of the call."""
    events = await agent.turn("bash echo marker-42", "say Done.")
    call = only(calls(events), "tool calls")
    answers = [result.output for result in results(events) if result.call_id == call.call_id]
    expect(answers, f"no result belongs to the call {call.call_id}")
    expect("marker-42" in answers[-1], f"the output is {answers[-1]!r}")


@CLAIMS.scene("tool.failed")
async def tool_failed(agent: Driven) -> None:
    """A mark or the shell's own words."""
    events = await agent.turn("bash cat /no/such/file-77", "say Done.")
    output = " ".join(result.output for result in results(events))
    failed = any(item.status == "failed" for item in items(events) if item.kind.startswith("tool"))
    expect(failed or "No such file" in output, f"the failed command looks like a success: {output!r}")


@CLAIMS.scene("command.output")
async def command_output(agent: Driven) -> None:
    """Output in events of its own."""
    events = await agent.turn("bash for i in 1 2 3; do echo tick-$i; sleep 0.4; done", "say Done.")
    printed = "".join(data.data for data in of_type(events, "terminal.output"))
    expect("tick-2" in printed, f"the terminal's output is {printed!r}")


@CLAIMS.scene("file.write")
async def file_write(agent: Driven) -> None:
    """The file is there and the log knows."""
    events = await agent.turn(f"write {agent.path('notes.txt')} hello\\n", "say Done.")
    content = agent.world.content("notes.txt")
    expect((content or "").strip() == "hello", f"the file holds {content!r}")
    paths = [str(data.path) for data in of_type(events, "file.changed")]
    expect(any(path.endswith("notes.txt") for path in paths), f"the announced files are {paths}")


@CLAIMS.scene("file.edit")
async def file_edit(agent: Driven) -> None:
    """The change is there and the log has its diff."""
    agent.world.put("notes.txt", b"one\ntwo\nthree\n")
    target = agent.path("notes.txt")
    events = await agent.turn(f"read {target}", f"edit {target} two => TWO", "say Done.")
    content = agent.world.content("notes.txt")
    expect("TWO" in (content or ""), f"the file holds {content!r}")
    diffs = [data.diff for data in of_type(events, "file.changed") if data.diff]
    expect(any("+TWO" in diff and "-two" in diff for diff in diffs), f"the diffs are {diffs}"[:300])


@CLAIMS.scene("mcp", mcp_servers={"echo": MCP_SERVER})
async def mcp(agent: Driven) -> None:
    """What the server answered arrives here or at the model."""
    events = await agent.turn('tool shout {"text": "quiet"}', "say Done.")
    found = "SHOUT:QUIET" in str(results(events)) or agent.world.reached_model("SHOUT:QUIET")
    expect(found, "the answer of the MCP server arrived nowhere")
