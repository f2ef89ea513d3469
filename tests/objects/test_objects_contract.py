"""Every place for files does the same."""

import subprocess
import sys
from pathlib import Path

import pytest

from ostler.base.errors import SettingsError, StoreUnavailable
from ostler.base.settings import Settings
from ostler.server.objects.opening import open_objects
from ostler.server.objects.protocol import Objects
from tests.support.buckets import CREDENTIALS, new_bucket, settings_of


@pytest.fixture(params=["folder", "bucket"])
def objects(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Objects:
    for name, value in CREDENTIALS.items():
        monkeypatch.setenv(name, value)
    more = settings_of(new_bucket()) if request.param == "bucket" else {}
    return open_objects(Settings(state_dir=tmp_path, **more))  # type: ignore[arg-type]  # all of them are texts


def test_what_was_put_can_be_read_replaced_and_removed(objects: Objects) -> None:
    assert objects.get("uploads/a") is None
    objects.put("uploads/a", b"first")
    objects.put("uploads/a", b"second")
    objects.put("uploads/b", b"")
    assert (objects.get("uploads/a"), objects.get("uploads/b")) == (b"second", b"")
    assert sorted(entry.key for entry in objects.entries("uploads")) == ["uploads/a", "uploads/b"]
    assert all(-60 < entry.age < 3600 for entry in objects.entries("uploads"))
    objects.remove("uploads/a")
    objects.remove("uploads/a")
    assert (objects.get("uploads/a"), objects.get("uploads/b")) == (None, b"")


def test_what_is_there_is_not_created_again(objects: Objects) -> None:
    assert objects.create("snapshots/ses_1/1/manifest.json", b"first")
    assert not objects.create("snapshots/ses_1/1/manifest.json", b"second")
    assert objects.get("snapshots/ses_1/1/manifest.json") == b"first"
    assert [entry.key for entry in objects.entries("snapshots")] == ["snapshots/ses_1/1/manifest.json"]


def test_a_folder_is_listed_and_removed_with_all_below_it_and_nothing_beside_it(objects: Objects) -> None:
    for key in ("ses_1/att_1/0.png", "ses_1/att_2/0.png", "ses_11/att_1/0.png"):
        objects.put(f"attachments/{key}", b"x" * 100_000)
    assert objects.folders("attachments") == {"ses_1", "ses_11"}
    objects.remove("attachments/ses_1")
    assert objects.folders("attachments") == {"ses_11"}
    assert [entry.key for entry in objects.entries("attachments")] == ["attachments/ses_11/att_1/0.png"]
    assert objects.folders("nothing") == set()


def test_nothing_is_left_of_folders_whose_last_object_was_removed(objects: Objects) -> None:
    objects.put("snapshots/ses_1/1/memory/0000", b"old")
    objects.put("snapshots/ses_1/2/memory/0000", b"new")
    objects.remove("snapshots/ses_1/1/memory/0000")
    assert objects.folders("snapshots/ses_1") == {"2"}
    objects.remove("snapshots/ses_1/2")
    assert objects.folders("snapshots") == set()


def test_a_folder_that_cannot_be_written_leaves_nothing(tmp_path: Path) -> None:
    objects = open_objects(Settings(state_dir=tmp_path))
    (tmp_path / "attachments").write_bytes(b"in the way")
    with pytest.raises(StoreUnavailable):
        objects.put("attachments/ses_1/att_1/0.png", b"x")
    assert [path.name for path in tmp_path.rglob("*")] == ["attachments"]


def test_a_file_that_cannot_be_read_is_not_one_that_is_not_there(tmp_path: Path) -> None:
    objects = open_objects(Settings(state_dir=tmp_path))
    folder = tmp_path / "snapshots" / "ses_1"
    folder.mkdir(parents=True)
    (folder / "manifest.json").symlink_to("/proc/self/mem")  # reading its beginning fails as a broken disk does
    with pytest.raises(StoreUnavailable):
        objects.get("snapshots/ses_1/manifest.json")
    assert (objects.get("snapshots/ses_1"), objects.get(f"snapshots/{'x' * 300}")) == (None, None)


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("ftp://somewhere/x", "must begin with s3://, gs:// or az://"),
        ("s3://no-such-bucket/x", "cannot be used"),
    ],
)
def test_a_bucket_that_cannot_be_used_is_refused_in_a_line(
    url: str, reason: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in CREDENTIALS.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(SettingsError) as refused:
        open_objects(Settings(state_dir=tmp_path, **settings_of(url)))  # type: ignore[arg-type]  # all are texts
    assert reason in str(refused.value)
    assert "\n" not in str(refused.value)


def test_a_server_without_the_driver_says_what_is_missing() -> None:
    program = """
import sys
sys.modules["obstore"] = None
from pathlib import Path
from ostler.base.settings import Settings
from ostler.server.objects.opening import open_objects
try:
    open_objects(Settings(state_dir=Path("/nonexistent"), object_store="s3://bucket"))
except Exception as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert "pip install 'ostler[objects]'" in done.stdout
