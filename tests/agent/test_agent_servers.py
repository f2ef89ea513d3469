"""Tools of MCP servers: offered, called, asked for, and what happens when their helper or the agent ends."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from socket import create_connection, socket

import pytest

from ostler.conformance.model import ScriptedModel
from ostler.wire.own_agent import Noted, PermissionAsk, Reply, ToolBegun
from ostler.wire.providers import HttpMcpServer, McpServer, StdioMcpServer
from tests.agent.process import Agent, agent, asked, notices, of, results, text
from tests.support.patience import wait_until

ECHO = Path(__file__).parents[2] / "src" / "ostler" / "conformance" / "mcp_echo.py"
ECHO_SERVER: McpServer = StdioMcpServer(command=sys.executable, args=(str(ECHO),))
SLOW = """
import pathlib, time
from mcp.server import MCPServer
server = MCPServer("slow")
@server.tool()
def wait(file: str) -> str:
    with pathlib.Path(file).open("a") as marks:
        marks.write("called ")
    time.sleep(300)
    return "never"
@server.tool()
def environ() -> str:
    import os
    return " ".join(sorted(os.environ))
server.run()
"""


GROWING = """
import sys
from mcp.server import MCPServer
from mcp.server.mcpserver import Context
server = MCPServer("growing")
@server.tool()
def shout(text: str) -> str:
    return "SHOUT:" + text.upper()
@server.tool()
async def learn(ctx: Context) -> str:
    server.add_tool(lambda text: "hush " + text, name="whisper", description="Say it quietly.")
    server.remove_tool("shout")
    await ctx.session.send_tool_list_changed()
    return "learned"
server.run("streamable-http", port=int(sys.argv[1]))
"""


def helpers(running: Agent) -> list[int]:
    """The helper processes of an agent."""
    children = Path(f"/proc/{running.process.pid}/task/{running.process.pid}/children")
    return [
        int(pid)
        for pid in children.read_text().split()
        if b"ostler.agent.mcp" in Path(f"/proc/{pid}/cmdline").read_bytes()
    ]


def test_a_tool_of_a_server_is_asked_for_and_called(tmp_path: Path, model: ScriptedModel) -> None:
    with agent(tmp_path, model, permission_mode="default", mcp_servers={"echo": ECHO_SERVER}) as running:
        running.prompt('tool shout {"text": "quiet"}', 'tool shout {"text": "no"}', "say Done.")
        ask = running.until(PermissionAsk)
        assert (ask.name, ask.action) == ("echo__shout", 'echo__shout {"text": "quiet"}')
        running.send(Reply(id=ask.id, allow=True))
        running.send(Reply(id=running.until(PermissionAsk, lambda each: each.id != ask.id).id, allow=False))
        running.rest()
        found = results(running.frames)
    assert found == [("SHOUT:QUIET", False), ("This was not allowed.", True)]
    [offered] = [tool["function"] for tool in asked(model)[0]["tools"] if tool["function"]["name"] == "echo__shout"]
    assert offered["parameters"]["required"] == ["text"]


def test_without_servers_there_is_no_helper_and_one_that_fails_is_told(tmp_path: Path, model: ScriptedModel) -> None:
    with agent(tmp_path, model) as running:
        running.turn("say Done.")
        assert helpers(running) == []
    nowhere: dict[str, McpServer] = {
        "gone": StdioMcpServer(command="/no/such/program"),
        "away": HttpMcpServer(url="http://127.0.0.1:9/mcp"),
        "echo": ECHO_SERVER,
    }
    with agent(tmp_path, model, mcp_servers=nowhere) as running:
        frames = running.turn('tool shout {"text": "quiet"}', "say Done.")
        told = [frame.message for frame in of(running.frames, Noted) if frame.code == "mcp"]
    assert results(frames) == [("SHOUT:QUIET", False)]
    assert ["'away'" in told[0], "'gone'" in told[1]] == [True, True]


def test_a_helper_that_dies_is_told_to_the_model_and_started_anew(tmp_path: Path, model: ScriptedModel) -> None:
    servers = {"slow": StdioMcpServer(command=sys.executable, args=("-c", SLOW)), "echo": ECHO_SERVER}
    mark = tmp_path / "mark"
    with agent(tmp_path, model, mcp_servers=servers) as running:
        running.prompt(
            f'tool wait {{"file": "{mark}"}}', 'tool shout {"text": "again"}', "tool environ {}", "say Done."
        )
        wait_until(mark.exists, "the tool is called")
        [helper] = helpers(running)
        os.kill(helper, signal.SIGKILL)
        frames = running.rest()
    [dead, again, environ] = results(frames)
    assert ("has ended" in dead[0], dead[1]) == (True, True)
    assert again == ("SHOUT:AGAIN", False)
    assert "OSTLER_PROVIDER_KEY" not in environ[0]


def test_a_helper_in_whose_place_is_another_one_is_ended(tmp_path: Path, model: ScriptedModel) -> None:
    with agent(tmp_path, model, mcp_servers={"echo": ECHO_SERVER}) as running:
        running.turn('tool shout {"text": "once"}', "say Done.")
        [helper] = helpers(running)
        Path(f"/proc/{helper}/fd/1").write_text("no frame\n")
        frames = running.turn('tool shout {"text": "again"}', "say Done.")
        wait_until(lambda: helper not in helpers(running), "it ends")
        assert len(helpers(running)) == 1
    assert results(frames) == [("SHOUT:AGAIN", False)]


def test_a_call_that_was_cut_off_is_not_made_again(tmp_path: Path, model: ScriptedModel) -> None:
    servers = {"slow": StdioMcpServer(command=sys.executable, args=("-c", SLOW))}
    mark = tmp_path / "mark"
    with agent(tmp_path, model, mcp_servers=servers) as running:
        running.prompt(f'tool wait {{"file": "{mark}"}}', "say Went on.", id="prm_1")
        running.until(ToolBegun)
        wait_until(mark.exists, "the tool is called")
        conversation = running.ready.session
    with agent(tmp_path, model, mcp_servers=servers, resume=conversation) as running:
        frames = running.turn(f'tool wait {{"file": "{mark}"}}', "say Went on.", id="prm_1")
    [(answer, failed)] = results(frames)
    assert ("cut off" in answer, failed, mark.read_text(), text(frames)) == (True, True, "called ", "Went on.")
    assert "mcp" not in notices(frames)


@contextmanager
def growing_server() -> Iterator[HttpMcpServer]:
    """A server of the official SDK over HTTP, whose tools change."""
    with socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
    with subprocess.Popen([sys.executable, "-I", "-c", GROWING, str(port)], stderr=subprocess.DEVNULL) as process:
        wait_until(lambda: _listens(port), what="the server listens")
        yield HttpMcpServer(url=f"http://127.0.0.1:{port}/mcp")
        process.kill()


def _listens(port: int) -> bool:
    with suppress(OSError), create_connection(("127.0.0.1", port)):
        return True
    return False


@pytest.mark.lane("agents")
def test_tools_that_a_server_over_http_changes_are_those_of_the_next_turn(tmp_path: Path, model: ScriptedModel) -> None:
    with growing_server() as server, agent(tmp_path, model, mcp_servers={"growing": server}) as running:
        first = running.turn('tool shout {"text": "quiet"}', "tool learn {}", "say Done.")
        second = running.turn('tool whisper {"text": "now"}', "say Done.")
    assert [answer for answer, _ in results(first)] == ["SHOUT:QUIET", "learned"]
    assert [answer for answer, _ in results(second)] == ["hush now"]
    offered = [[tool["function"]["name"] for tool in body["tools"]] for body in asked(model)]
    served = [[name for name in names if name.startswith("growing__")] for names in offered]
    before, after = ["growing__learn", "growing__shout"], ["growing__learn", "growing__whisper"]
    assert served == [before, before, before, after, after]
