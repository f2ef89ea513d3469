"""Images and tickets lie in the bucket that a server is given, so any server finds them."""

import base64
import io
import tarfile
from pathlib import Path

import httpx
import pytest

from ostler.base.settings import Settings
from ostler.server.objects.opening import open_objects
from tests.support.buckets import CREDENTIALS, new_bucket, settings_of
from tests.support.databases import shared_cluster
from tests.support.patience import wait_until
from tests.support.serving import RunningServer, running_server
from tests.support.talk import Talk

PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
IMAGE = {"type": "image", "data": base64.b64encode(PNG).decode(), "mime": "image/png"}


def client_of(server: RunningServer) -> httpx.Client:
    return httpx.Client(base_url=f"{server.url}/api/v1", timeout=60)


def archive() -> bytes:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as tar:
        tar.addfile(tarfile.TarInfo("a.txt"), io.BytesIO())
    return packed.getvalue()


def test_what_one_server_was_sent_is_found_by_another(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in CREDENTIALS.items():
        monkeypatch.setenv(name, value)
    bucket = settings_of(new_bucket())
    env = {f"OSTLER_{name.upper()}": value for name, value in bucket.items()} | CREDENTIALS
    env["OSTLER_DATABASE"] = shared_cluster().new_database()
    first, second = tmp_path / "one" / "state", tmp_path / "two" / "state"
    with (
        running_server(first, env=env) as one,
        running_server(second, env=env) as other,
        client_of(one) as api,
        client_of(other) as elsewhere,
    ):
        talk = Talk(api)
        talk.post("/messages", parts=[{"type": "text", "text": "mock: say hi"}, IMAGE])
        talk.until_type("turn.ended")
        (path,) = [
            part["path"]
            for event in talk.events
            if event["type"] == "item.completed"
            for part in event["data"]["item"]["content"]
            if part["type"] == "image"
        ]
        shown = elsewhere.get(f"/sessions/{talk.id}/files/image", params={"path": path})
        assert (shown.status_code, shown.content) == (200, PNG), shown.text
        ticket = api.post("/uploads").json()
        assert httpx.put(f"{other.url}{ticket['url']}", content=archive(), timeout=60).status_code == 200
        assert [list((state / name).iterdir()) for state in (first, second) for name in ("attachments", "uploads")] == [
            [] for _ in range(4)
        ]
        assert _left(bucket) == {talk.id}
        assert elsewhere.delete(f"/sessions/{talk.id}").is_success
        wait_until(lambda: _left(bucket) == set(), what="its images are removed")


def _left(bucket: dict[str, str]) -> set[str]:
    objects = open_objects(Settings(state_dir=Path("/nonexistent"), **bucket))  # type: ignore[arg-type]  # texts
    return objects.folders("attachments")
