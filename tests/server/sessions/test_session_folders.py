"""What a session has on disk comes with it and goes with it, whatever becomes of the server in between."""

import base64
from pathlib import Path

import httpx
import pytest

from tests.support.patience import wait_until
from tests.support.serving import RunningServer, running_server
from tests.support.talk import Talk

PICTURE = {"type": "image", "data": base64.b64encode(b"\x89PNG and more").decode(), "mime": "image/png"}


@pytest.fixture
def state_dir(tmp_path: Path) -> Path:
    return tmp_path / "state"


def client_of(server: RunningServer) -> httpx.Client:
    return httpx.Client(base_url=f"{server.url}/api/v1", timeout=60)


def names(state_dir: Path) -> dict[str, set[str]]:
    """The sessions that lie in each of our folders."""
    folders = ("sessions", "attachments", "trash")
    return {name: {path.name for path in (state_dir / name).iterdir()} for name in folders}


def cleared(state_dir: Path, *left: str) -> None:
    expected = {"sessions": set(left), "attachments": set(left), "trash": set()}
    wait_until(lambda: names(state_dir) == expected, what=f"something is left: {names(state_dir)}")


def talk_with_a_picture(api: httpx.Client) -> Talk:
    talk = Talk(api)
    talk.post("/messages", parts=[{"type": "text", "text": "mock: say hi"}, PICTURE])
    talk.until_type("turn.ended")
    return talk


def test_the_folder_is_there_at_once_and_goes_with_the_session(state_dir: Path) -> None:
    with running_server(state_dir) as server, client_of(server) as api:
        talk, other = talk_with_a_picture(api), talk_with_a_picture(api)
        plain = api.post("/sessions", json={"agent": "mock", "key": "once"}).json()
        assert list(Path(plain["cwd"]).iterdir()) == []
        api.post("/sessions", json={"agent": "mock", "key": "once"}).raise_for_status()
        refused = api.post("/sessions", json={"agent": "mock", "mcpServers": {"x": {"type": "http", "url": "ftp://x"}}})
        assert refused.is_client_error
        assert names(state_dir)["sessions"] == {talk.id, other.id, plain["id"]}
        for session in (talk.id, plain["id"]):
            assert api.delete(f"/sessions/{session}").is_success
        cleared(state_dir, other.id)


def test_what_a_killed_server_left_is_cleared_by_the_next_one(state_dir: Path) -> None:
    with running_server(state_dir) as server, client_of(server) as api:
        talk = talk_with_a_picture(api)
        server.process.kill()
        server.process.wait(60)
    for name in ("sessions/ses_unborn/workspace", "attachments/ses_deleted/att_1", "trash/ses_deleted/home"):
        (state_dir / name).mkdir(parents=True)
    with running_server(state_dir):
        cleared(state_dir, talk.id)
