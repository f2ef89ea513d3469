"""Pictures that a session names are given to who asks, and nothing else is."""

import base64
import json
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tests.support.chatting import SSE, chunks, envelope, load, message
from tests.support.http_helpers import assert_problem
from tests.support.serving import RunningServer, running_server
from tests.support.talk import Talk

LOUD = Path(__file__).parents[2] / "support" / "programs" / "loud_agent.py"
DOT = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)


@pytest.fixture(scope="module")
def painter(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    """A server with an agent that speaks ACP and shows whatever it is told to."""
    env = {"OSTLER_AGENTS": json.dumps({"loud": {"command": [sys.executable, str(LOUD)]}})}
    with running_server(tmp_path_factory.mktemp("painter") / "state", env=env) as running:
        yield running


def image(talk: Talk, path: str | Path) -> httpx.Response:
    return talk.api.get(f"/sessions/{talk.id}/files/image", params={"path": str(path)})


@pytest.mark.parametrize(
    ("content", "media_type"),
    [
        (DOT, "image/png"),
        (b"\xff\xd8\xff\xe0 and more", "image/jpeg"),
        (b"GIF89a and more", "image/gif"),
        (b"RIFF\x10\x00\x00\x00WEBPVP8 ", "image/webp"),
        (b"BM and more", "image/bmp"),
    ],
)
def test_a_picture_in_the_folder_is_shown_as_what_it_is(
    api: httpx.Client, tmp_path: Path, content: bytes, media_type: str
) -> None:
    (tmp_path / "chart.txt").write_bytes(content)
    talk = Talk(api, cwd=str(tmp_path))
    for path in ("chart.txt", tmp_path / "chart.txt"):
        answer = image(talk, path)
        assert (answer.status_code, answer.content, answer.headers["content-type"]) == (200, content, media_type)
    assert (answer.headers["x-content-type-options"], answer.headers["content-security-policy"]) == (
        "nosniff",
        "sandbox",
    )


@pytest.mark.parametrize(
    ("name", "kept"), [(None, "0.png"), ("My chart.png", "My chart.png"), ("../a.png", "a.png"), ("a.exe", "0.png")]
)
def test_the_picture_of_a_prompt_is_shown_and_keeps_its_name(api: httpx.Client, name: str | None, kept: str) -> None:
    talk = Talk(api)
    part = {"type": "image", "data": base64.b64encode(DOT).decode(), "mime": "image/png", "name": name}
    talk.post("/messages", parts=[part])
    talk.until_type("turn.ended")
    items = [event["data"]["item"] for event in talk.events if event["type"] == "item.completed"]
    [path] = [part["path"] for item in items for part in item["content"] if part["type"] == "image"]
    assert (image(talk, path).content, Path(path).name) == (DOT, kept)
    assert_problem(image(Talk(api), path), "invalid_request", field="path")


def test_a_picture_that_an_agent_shows_is_kept_and_given_to_who_asks(painter: RunningServer) -> None:
    picture = {"type": "image", "mimeType": "image/png", "data": base64.b64encode(DOT).decode()}
    update = json.dumps([{"sessionUpdate": "agent_message_chunk", "content": picture}])
    with httpx.Client(base_url=f"{painter.url}/api/v1", timeout=60) as api:
        talk = Talk(api, agent="loud")
        events = talk.turn(update)
        items = [event["data"]["item"] for event in events if event["type"] == "item.completed"]
        [item] = [item for item in items if item["role"] == "assistant"]
        [part] = item["content"]
        assert (part["type"], part["mime"]) == ("image", "image/png")
        assert image(talk, part["path"]).content == DOT
        assert_problem(image(Talk(api, agent="loud"), part["path"]), "invalid_request", field="path")
        assert picture["data"] not in json.dumps(item)
    with httpx.Client(base_url=painter.url, timeout=60) as root:
        body = envelope(message(update), session="drawn", parameters={"agent": {"harness": "loud"}})
        told = chunks(root.post("/messages", json=body, headers=SSE))
        [file] = [chunk for chunk in told if chunk["type"] == "file"]
        assert (file["mediaType"], root.get(file["url"]).content) == ("image/png", DOT)
        assert file in load(root, "drawn")[-1]["parts"]


def test_what_is_no_picture_or_lies_elsewhere_is_refused(api: httpx.Client, tmp_path: Path) -> None:
    folder, outside = tmp_path / "work", tmp_path / "outside.png"
    folder.mkdir()
    outside.write_bytes(DOT)
    (folder / "link.png").symlink_to(outside)
    (folder / "page.png").write_text("<script>alert(1)</script>")
    (folder / "drawing.svg").write_text("<svg xmlns='http://www.w3.org/2000/svg'/>")
    talk = Talk(api, cwd=str(folder))
    for path in (outside, "../outside.png", "/etc/passwd", "a\0b", "x" * 3000):
        assert_problem(image(talk, path), "invalid_request", field="path")
    for path in ("link.png", "."):
        assert_problem(image(talk, path), "path_refused")
    for path in ("page.png", "drawing.svg"):
        problem = assert_problem(image(talk, path), "unprocessable")
        assert list(problem["errors"]) == ["path"]
    assert_problem(image(talk, "none.png"), "file_not_found")


def test_a_file_that_comes_with_a_prompt_is_where_the_agent_looks(api: httpx.Client) -> None:
    talk = Talk(api, permissionMode="bypass")
    data = base64.b64encode(b"Name,Size\nTea,3\n").decode()
    part = {"type": "file", "name": "../odd?/Sizes of tea.csv", "data": data}
    order = {"type": "text", "text": "mock: run cat $HOME/.ostler/images/*/0/*"}
    talk.post("/messages", parts=[order, part])
    talk.until_type("turn.ended")
    items = [event["data"]["item"] for event in talk.events if event["type"] == "item.completed"]
    [path] = [part["path"] for item in items for part in item["content"] if part["type"] == "file_ref"]
    assert path.endswith("/Sizes of tea.csv")
    assert "Tea,3" in str(items)


def test_data_of_a_file_that_is_none_is_refused(api: httpx.Client) -> None:
    talk = Talk(api)
    answer = talk.api.post(
        f"/sessions/{talk.id}/messages", json={"parts": [{"type": "file", "name": "x.txt", "data": "a"}]}
    )
    assert_problem(answer, "invalid_request", field="parts")
