"""MCP servers that die, hang, talk nonsense, offer too much, or take the names of other tools."""

import shlex
import sys
from pathlib import Path

import pytest

from ostler.conformance.model import ScriptedModel
from ostler.wire.own_agent import Answered, ClientCalled, Noted
from ostler.wire.providers import ClientTool, McpServer, StdioMcpServer
from tests.agent.process import agent, asked, end, of, results, text
from tests.agent.test_agent_servers import ECHO, ECHO_SERVER

MANY = """
from mcp.server import MCPServer
server = MCPServer("many")
for number in range(500):
    server.add_tool(lambda text: text, name=f"tool{number}", description="d" * 6_000)
server.run()
"""
ODD = """
import os
from mcp.server import MCPServer
from mcp.types import ImageContent
server = MCPServer("odd")
@server.tool()
def die() -> str:
    os._exit(3)
@server.tool()
def pid() -> str:
    return str(os.getpid())
@server.tool()
def picture(data: str) -> list[ImageContent]:
    return [ImageContent(type="image", data=data, mime_type="image/png")]
@server.tool()
def pour() -> str:
    return "x" * 20_000_000
server.run()
"""


def program(code: str) -> McpServer:
    """A server that is this Python."""
    return StdioMcpServer(command=sys.executable, args=("-c", code))


def offered(model: ScriptedModel, number: int = -1) -> list[str]:
    """The tools of a request."""
    return [tool["function"]["name"] for tool in asked(model)[number]["tools"]]


def test_a_server_that_dies_is_told_to_the_model_and_is_back_in_the_next_turn(
    tmp_path: Path, model: ScriptedModel
) -> None:
    with agent(tmp_path, model, mcp_servers={"odd": program(ODD)}) as running:
        first = running.turn("tool pid {}", "tool die {}", "say Went on.")
        second = running.turn("tool pid {}", "say Done.")
    [before, died] = results(first)
    [(after, failed)] = results(second)
    assert (died[1], text(first), end(first)) == (True, "Went on.", ("completed", "end_turn"))
    assert (failed, after.isdecimal(), after != before[0]) == (False, True, True)


def test_what_a_server_sends_that_cannot_be_shown_is_said_and_spoils_nothing(
    tmp_path: Path, model: ScriptedModel
) -> None:
    with agent(tmp_path, model, mcp_servers={"odd": program(ODD)}) as running:
        frames = running.turn(
            'tool picture {"data": "PHN2Zy8+"}', 'tool picture {"data": "a"}', "tool pour {}", "say Ok."
        )
    [svg, broken, poured] = results(frames)
    assert svg == ("[an image that cannot be shown: it is no PNG, JPEG, GIF or WebP]", False)
    assert (broken[1], len(poured[0]) < 60_000, text(frames)) == (True, True, "Ok.")
    assert "image_url" not in str(asked(model)[-1]["messages"])


def test_a_server_that_prints_garbage_between_its_messages_is_heard(tmp_path: Path, model: ScriptedModel) -> None:
    start = f"echo garbage; echo '{{}}'; exec {shlex.quote(sys.executable)} {shlex.quote(str(ECHO))}"
    servers: dict[str, McpServer] = {"echo": StdioMcpServer(command="sh", args=("-c", start))}
    with agent(tmp_path, model, mcp_servers=servers) as running:
        frames = running.turn('tool shout {"text": "quiet"}', "say Done.")
    assert (results(frames), text(frames)) == ([("SHOUT:QUIET", False)], "Done.")


def test_of_hundreds_of_tools_a_model_gets_as_many_as_it_takes(tmp_path: Path, model: ScriptedModel) -> None:
    with agent(tmp_path, model, mcp_servers={"many": program(MANY)}) as running:
        running.turn("say Once.")
        running.turn("say Twice.")
        told = [frame.message for frame in of(running.frames, Noted) if frame.code == "mcp"]
    assert len(offered(model)) == 128
    assert {"read", "bash", "many__tool0"} < set(offered(model))
    assert len(str(asked(model)[0]["tools"])) < 1_000_000
    [words] = told
    assert "offer 500 tools" in words


def test_no_tool_of_a_server_takes_the_name_of_another_tool(tmp_path: Path, model: ScriptedModel) -> None:
    mine = ClientTool(name="echo__shout", description="Mine.", input_schema={"type": "object"})
    servers: dict[str, McpServer] = {"echo": ECHO_SERVER, "e.cho": ECHO_SERVER, "e_cho": ECHO_SERVER}
    with agent(tmp_path, model, mcp_servers=servers, client_tools=(mine,)) as running:
        running.prompt("tool echo__shout {}", "say Done.")
        call = running.until(ClientCalled)
        running.send(Answered(id=call.id, answers=("by the client",)))
        frames = running.rest()
    assert results(running.frames) == [("by the client", False)]
    assert end(frames) == ("completed", "end_turn")
    names = offered(model)
    shouts = [name for name in names if "shout" in name]
    assert (len(names), len(shouts)) == (len(set(names)), 4)


@pytest.mark.lane("agents")
def test_a_server_that_hangs_is_waited_for_once(tmp_path: Path, model: ScriptedModel) -> None:
    servers: dict[str, McpServer] = {"deaf": StdioMcpServer(command="sleep", args=("600",)), "echo": ECHO_SERVER}
    with agent(tmp_path, model, mcp_servers=servers) as running:
        frames = running.turn('tool shout {"text": "quiet"}', "say Done.")
        again = running.turn("say Again.")
        told = [frame.message for frame in of(running.frames, Noted) if frame.code == "mcp"]
    assert (results(frames), text(again)) == ([("SHOUT:QUIET", False)], "Again.")
    assert told == ["The MCP server 'deaf' cannot be used: it did not answer in time."]
