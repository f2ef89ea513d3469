"""Models that send what no model should: without end, again and again, or what cannot be read."""

import itertools
import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from ostler.agent.operations import ToolFailed
from ostler.agent.workspace import Workspace
from ostler.conformance.model import ScriptedModel
from ostler.wire.own_agent import Failed, Image, ToolPrinted
from tests.agent.process import APIS, PATHS, Agent, agent, asked, end, notices, of, results, text
from tests.agent.test_agent_tasks import task

Body = Callable[[], Iterator[bytes]]
MEGABYTE = 2**20


class Handler(BaseHTTPRequestHandler):
    """Gives the next body, whatever it is."""

    server: "RawModel"

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002  the base class names it so
        pass

    def do_POST(self) -> None:
        self.server.bodies.append(json.loads(self.rfile.read(int(self.headers["content-length"]))))
        self.send_response(200)
        self.end_headers()
        try:
            for piece in self.server.replies.pop(0)():
                self.wfile.write(piece)
        except ConnectionError:
            self.server.hung_up.set()


class RawModel(ThreadingHTTPServer):
    """A model whose answers are bytes."""

    def __init__(self, *replies: Body) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.replies = list(replies)
        self.bodies: list[dict[str, Any]] = []
        self.hung_up = threading.Event()


@contextmanager
def asking(folder: Path, api: str, *replies: Body, **fields: Any) -> Iterator[tuple[Agent, RawModel]]:
    """An agent whose model gives these answers, one after the other."""
    with RawModel(*replies) as model:
        thread = threading.Thread(target=model.serve_forever, args=(0.02,))
        thread.start()
        try:
            url = f"http://127.0.0.1:{model.server_address[1]}{PATHS[api]}"
            with ScriptedModel() as unused, agent(folder, unused, api, base_url=url, **fields) as running:
                yield running, model
        finally:
            model.shutdown()
            thread.join()


def sse(*events: Any) -> bytes:
    """Events as they are sent."""
    return b"".join(b"data: %s\n\n" % json.dumps(event).encode() for event in events)


def whole(*events: Any) -> Body:
    """An answer that comes in one piece."""
    return lambda: iter([sse(*events)])


def said(api: str, words: str) -> Body:
    """An ordinary answer."""
    match api:
        case "chat":
            return whole({"choices": [{"delta": {"content": words}, "finish_reason": "stop"}]})
        case "messages":
            return whole(
                {"type": "content_block_start", "content_block": {"type": "text", "text": ""}},
                {"type": "content_block_delta", "delta": {"type": "text_delta", "text": words}},
                {"type": "message_delta", "delta": {"stop_reason": "end_turn"}},
                {"type": "message_stop"},
            )
        case "responses":
            item = {"type": "message", "content": [{"type": "output_text", "text": words}]}
            return whole(
                {"type": "response.output_text.delta", "delta": words},
                {"type": "response.output_item.done", "item": item},
                {"type": "response.completed", "response": {}},
            )
        case _:
            return whole({"candidates": [{"content": {"parts": [{"text": words}]}, "finishReason": "STOP"}]})


def called(*calls: tuple[str, str, str]) -> Body:
    """An answer of Chat Completions with these calls: id, name and input."""
    pieces = [
        {"index": index, "id": native, "function": {"name": name, "arguments": given}}
        for index, (native, name, given) in enumerate(calls)
    ]
    return whole({"choices": [{"delta": {"tool_calls": pieces}, "finish_reason": "tool_calls"}]})


def history(body: dict[str, Any]) -> tuple[list[str], list[str]]:
    """The ids of the calls and of the results in a request of Chat Completions."""
    calls = [call["id"] for message in body["messages"] for call in message.get("tool_calls", ())]
    return calls, [message["tool_call_id"] for message in body["messages"] if message["role"] == "tool"]


@pytest.mark.parametrize("api", APIS)
@pytest.mark.parametrize("event", [b'{"type": "\xff\xfe", "choices": "\xff"}', b'{"a": ' + b"[" * 100_000, b"\xff"])
def test_an_event_that_cannot_be_read_breaks_the_answer_and_not_the_agent(
    tmp_path: Path, api: str, event: bytes
) -> None:
    with asking(tmp_path, api, lambda: iter([b"data: " + event + b"\n\n"]), said(api, "Whole.")) as (running, _):
        frames = running.turn("say Whole.")
    assert (text(frames), end(frames)) == ("Whole.", ("completed", "end_turn"))
    assert "broke off" in notices(frames)["retry"]


def _endless_input() -> Iterator[bytes]:
    yield sse({"choices": [{"delta": {"tool_calls": [{"id": "c", "function": {"name": "write"}}]}}]})
    for _ in range(100):
        yield sse({"choices": [{"delta": {"tool_calls": [{"function": {"arguments": "x" * MEGABYTE}}]}}]})


def _endless_line() -> Iterator[bytes]:
    yield b"data: "
    for _ in range(100):
        yield b"x" * MEGABYTE


@pytest.mark.parametrize("endless", [_endless_input, _endless_line])
def test_an_answer_without_end_is_given_up(tmp_path: Path, endless: Body) -> None:
    with asking(tmp_path, "chat", endless, said("chat", "Still here.")) as (running, model):
        frames = running.turn("say nothing")
        assert model.hung_up.wait(60)
        assert text(running.turn("say Still here.")) == "Still here."
    [failed] = of(frames, Failed)
    assert failed.message == "The model's answer has more than 64 MB, so it was given up. Ask again."
    assert end(frames) == ("failed", "provider_error")


def test_calls_that_share_an_id_are_each_run_once_and_told_apart(tmp_path: Path) -> None:
    (tmp_path / "workspace").mkdir()
    twice = called(("same", "bash", '{"command": "echo one >>a"}'), ("same", "bash", '{"command": "echo two >>a"}'))
    again = called(("same", "bash", '{"command": "echo three >>a"}'))
    with asking(tmp_path, "chat", twice, again, said("chat", "Done.")) as (running, model):
        frames = running.turn("say nothing")
    assert (tmp_path / "workspace" / "a").read_text() == "one\ntwo\nthree\n"
    assert end(frames) == ("completed", "end_turn")
    calls, answers = history(model.bodies[-1])
    assert (len(set(calls)), calls) == (3, answers)


def test_hundreds_of_calls_at_once_have_each_their_result(tmp_path: Path) -> None:
    (tmp_path / "workspace").mkdir()
    (tmp_path / "workspace" / "a.txt").write_text("found\n")
    calls = called(*((f"call_{number}", "read", '{"path": "a.txt"}') for number in range(400)))
    with asking(tmp_path, "chat", calls, said("chat", "Done.")) as (running, model):
        frames = running.turn("say nothing")
    assert results(frames) == [("found", False)] * 400
    assert end(frames) == ("completed", "loop")
    assert history(model.bodies[-1]) == ([], [])


@pytest.mark.parametrize("name", ["", "rm -rf /", "x" * 1000, "r\u00e9ad"])
def test_a_tool_with_a_name_that_no_provider_takes_back_does_not_spoil_the_history(tmp_path: Path, name: str) -> None:
    with asking(tmp_path, "chat", called(("c", name, "{}")), said("chat", "Done.")) as (running, model):
        frames = running.turn("say nothing")
    assert ("There is no tool" in results(frames)[0][0], text(frames)) == (True, "Done.")
    [call] = [call for message in model.bodies[-1]["messages"] for call in message.get("tool_calls", ())]
    sent = call["function"]["name"]
    assert (sent.isascii(), 0 < len(sent) <= 64, " " in sent) == (True, True, False)


def test_an_input_that_is_nested_without_end_is_answered(tmp_path: Path) -> None:
    nested = '{"path": ' + "[" * 5000 + "]" * 5000 + "}"
    events = (
        {"type": "content_block_start", "content_block": {"type": "tool_use", "id": "t", "name": "read"}},
        {"type": "content_block_delta", "delta": {"type": "input_json_delta", "partial_json": nested}},
        {"type": "message_delta", "delta": {"stop_reason": "tool_use"}},
        {"type": "message_stop"},
    )
    with asking(tmp_path, "messages", whole(*events), said("messages", "Done.")) as (running, _):
        frames = running.turn("say nothing")
    assert ("cannot be used" in results(frames)[0][0], text(frames)) == (True, "Done.")


def test_of_a_command_that_prints_without_end_people_see_the_beginning(tmp_path: Path, model: ScriptedModel) -> None:
    with agent(tmp_path, model) as running:
        frames = running.turn("bash head -c 20000000 /dev/zero | tr '\\\\0' x", "say Done.")
    shown = "".join(frame.text for frame in of(frames, ToolPrinted))
    assert 4 * MEGABYTE <= len(shown) < 4 * MEGABYTE + 100
    assert shown.endswith("[what it prints from here on is not shown]\n")
    [(answer, failed)] = results(frames)
    assert (len(answer) < 60_000, "characters left out" in answer, failed) == (True, True, False)


def test_a_sub_agent_has_no_sub_agents(tmp_path: Path, model: ScriptedModel) -> None:
    with agent(tmp_path, model) as running:
        frames = running.turn(task('tool task {"description": "more", "prompt": "more"}', "say No more."), "say Done.")
    assert any("There is no tool `task`" in answer for answer, _ in results(frames))
    assert end(frames) == ("completed", "end_turn")


def test_an_image_that_no_provider_takes_is_left_out_with_a_notice(tmp_path: Path, model: ScriptedModel) -> None:
    images = (Image(mime="image/png", data=b"<svg/>"), Image(mime="image/png", data=b"\x89PNG\r\n\x1a\n" + bytes(20)))
    with agent(tmp_path, model) as running:
        frames = running.turn("say Done.", images=images)
    assert notices(frames)["image"] == (
        "An image of the prompt is not shown to the model: it is no PNG, JPEG, GIF or WebP."
    )
    assert [part["type"] for part in asked(model)[0]["messages"][1]["content"]] == ["text", "image_url"]


@contextmanager
def swapping(link: Path, outside: Path) -> Iterator[None]:
    """A link that leads to the folder `real` beside it, and outside in the next moment."""
    over = threading.Event()

    def swap() -> None:
        for target in itertools.cycle((outside, Path("real"))):
            link.with_name("fresh").symlink_to(target)
            link.with_name("fresh").replace(link)
            if over.is_set():
                return

    thread = threading.Thread(target=swap)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def test_a_link_that_is_changed_in_the_same_moment_leads_nowhere_outside(tmp_path: Path) -> None:
    inside, outside = tmp_path / "workspace" / "real", tmp_path / "outside"
    for folder, words in ((inside, "mine"), (outside, "secret")):
        folder.mkdir(parents=True)
        (folder / "a.txt").write_text(words)
    (outside / "only-outside.txt").touch()
    workspace = Workspace(str(tmp_path / "workspace"))
    read, seen, written = set[bytes](), set[str](), 0
    with swapping(inside.with_name("sub"), outside):
        for _ in range(2000):
            with suppress(ToolFailed):
                read.add(workspace.read("sub/a.txt", MEGABYTE))
            with suppress(ToolFailed):
                written += workspace.write("sub/b.txt", b"x")
            with suppress(ToolFailed):
                seen |= set(workspace.names("sub"))
            with suppress(ToolFailed):
                seen |= {found.path for found in workspace.files("sub")}
    assert (read, written > 0) == ({b"mine"}, True)
    assert not {name for name in seen if "only-outside" in name}
    assert sorted(path.name for path in outside.iterdir()) == ["a.txt", "only-outside.txt"]
    assert (outside / "a.txt").read_text() == "secret"
