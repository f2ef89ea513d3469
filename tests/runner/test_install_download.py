"""Vendors' binaries: found by version and platform, checked and unpacked; a vendor who fails gives way to the next."""

import hashlib
import json
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from ostler.base.errors import InstallFailed
from ostler.runner.installs.download import sha256_in
from ostler.runner.installs.platforms import is_musl, loader_of, platform_name, this_platform
from tests.support.installing import Handler, Vendor, begun, installer_in, npm_source, serving, tarball, zipped

SUM = hashlib.sha256(b"program").hexdigest()
Pack = Callable[[dict[str, str]], bytes]
OTHER = hashlib.sha256(b"other").hexdigest()


@pytest.mark.parametrize("latest", [b"1.4.0\n", b'{"tag_name": "v1.4.0"}', b'{"tag_name": "rust-v1.4.0", "x": 1}'])
def test_the_newest_version_is_asked_for_and_installed(tmp_path: Path, latest: bytes) -> None:
    with serving() as vendor:
        vendor.files = {"/latest": latest, "/1.4.0/agent-x86": b"program"}
        made = installer_in(tmp_path).install("tiny", (vendor.source(),))
    assert (made.version, Path(made.path).read_bytes(), Path(made.path).stat().st_mode & 0o777) == (
        "1.4.0",
        b"program",
        0o755,
    )


def test_a_wanted_version_is_fetched_without_asking_for_the_newest(tmp_path: Path) -> None:
    with serving() as vendor:
        vendor.files = {"/1.0.0/agent-x86": b"program"}
        made = installer_in(tmp_path).install("tiny", (vendor.source(),), version="1.0.0")
        assert (made.version, vendor.asked) == ("1.0.0", ["/1.0.0/agent-x86"])


@pytest.mark.parametrize(("kind", "pack"), [("tar.gz", tarball), ("zip", zipped)])
def test_the_program_is_taken_out_of_an_archive(tmp_path: Path, kind: str, pack: Pack) -> None:
    with serving() as vendor:
        vendor.files = {"/latest": b"1.0", "/1.0/agent-x86": pack({"agent-x86/bin/run": "hi", "agent-x86/README": ""})}
        source = vendor.source(archive=kind, program="agent-{platform}/*/run")
        made = installer_in(tmp_path).install("tiny", (source,))
    assert made.path == str(tmp_path / "agents/tiny/1.0/agent-x86/bin/run")
    assert Path(made.path).stat().st_mode & 0o111


def test_an_archive_cannot_write_outside_its_folder(tmp_path: Path) -> None:
    with serving() as vendor:
        vendor.files = {"/latest": b"1.0", "/1.0/agent-x86": tarball({"../../../../evil": "x"})}
        with pytest.raises(InstallFailed, match="leads out of the archive"):
            installer_in(tmp_path).install("tiny", (vendor.source(archive="tar.gz"),))
    assert not list(tmp_path.rglob("evil"))


def with_checksum(vendor: Vendor, checksum: str) -> None:
    vendor.files = {"/latest": b"1.0", "/1.0/agent-x86": b"program", "/1.0/sums": checksum.encode()}


def test_a_right_checksum_is_needed_where_the_vendor_gives_one(tmp_path: Path) -> None:
    with serving() as vendor:
        with_checksum(vendor, json.dumps({"platforms": {"arm": {"checksum": OTHER}, "x86": {"checksum": SUM}}}))
        source = vendor.source(checksum_url=f"{vendor.url}/{{version}}/sums")
        assert installer_in(tmp_path).install("tiny", (source,)).version == "1.0"


def test_a_wrong_checksum_ends_everything(tmp_path: Path) -> None:
    with serving() as vendor:
        with_checksum(vendor, OTHER)
        source = vendor.source(checksum_url=f"{vendor.url}/{{version}}/sums")
        with pytest.raises(InstallFailed, match=f"{SUM}, its vendor says {OTHER}. Nothing was installed"):
            installer_in(tmp_path).install("tiny", (source, npm_source(tmp_path)))
    assert installer_in(tmp_path).records("tiny") == []


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (SUM, SUM),
        (f"{OTHER}  b.tar.gz\n{SUM}  a.tar.gz\n", SUM),
        (f"{OTHER} *b.tar.gz\n{SUM} *a.tar.gz\n", SUM),
        (f"{OTHER}  b.tar.gz\n{SUM}  c.tar.gz\n", None),
        (
            json.dumps({"assets": [{"name": "b", "digest": OTHER}, {"name": "a.tar.gz", "digest": f"sha256:{SUM}"}]}),
            SUM,
        ),
        (json.dumps({"a.tar.gz": SUM, "b": OTHER}), SUM),
        (json.dumps({"sha256": SUM.upper()}), SUM),
        (json.dumps([SUM, OTHER]), None),
        ("nothing", None),
    ],
)
def test_a_checksum_is_found_in_whatever_vendors_write(text: str, found: str | None) -> None:
    assert sha256_in(text, "x86", "a.tar.gz") == found


def failing(vendor: Vendor, trouble: str) -> None:
    """Make a vendor fail in one way."""
    files = {"/latest": b"1.0", "/1.0/agent-x86": b"program"}
    match trouble:
        case "404":
            del files["/1.0/agent-x86"]
        case "nonsense":
            files["/latest"] = b"<html>no</html>"
    vendor.files = dict(files)
    if trouble == "truncated":
        vendor.files["/1.0/agent-x86"] = lambda handler: begun(handler, 99, b"prog")


@pytest.mark.parametrize(
    ("trouble", "said"),
    [
        ("404", "answers 404"),
        ("nonsense", "does not tell a version"),
        ("truncated", "broke off"),
    ],
)
def test_a_vendor_who_fails_gives_way_to_the_next_source(tmp_path: Path, trouble: str, said: str) -> None:
    told: list[str] = []
    with serving() as vendor:
        failing(vendor, trouble)
        made = installer_in(tmp_path).install("tiny", (vendor.source(), npm_source(tmp_path)), progress=told.append)
    assert made.version == "1.2.3"
    assert [line for line in told if line.startswith("not from download:") and said in line] != []


def test_a_vendor_who_cannot_be_reached_or_lacks_the_platform_gives_way_too(tmp_path: Path) -> None:
    told: list[str] = []
    nobody, strange = Vendor("http://127.0.0.1:1").source(), Vendor("http://127.0.0.1:1").source(platforms={})
    made = installer_in(tmp_path).install("tiny", (nobody, strange, npm_source(tmp_path)), progress=told.append)
    assert made.version == "1.2.3"
    assert "not from download: 127.0.0.1 cannot be reached" in told
    assert "not from download: the vendor has no binary for linux-x64" in told


def test_a_vendor_who_never_ends_is_given_up(tmp_path: Path) -> None:
    released = threading.Event()

    def trickle(handler: Handler) -> None:
        begun(handler, 10**9, b"x")
        while not released.wait(0.05):
            handler.wfile.write(b"x")

    with serving() as vendor:
        vendor.files = {"/latest": b"1.0", "/1.0/agent-x86": trickle}
        with pytest.raises(InstallFailed, match="longer than 1 seconds"):
            installer_in(tmp_path, seconds=1).install("tiny", (vendor.source(),))
        released.set()


@pytest.mark.parametrize(
    ("system", "machine", "musl", "name"),
    [
        ("Linux", "x86_64", False, "linux-x64"),
        ("Linux", "x86_64", True, "linux-x64-musl"),
        ("Linux", "aarch64", False, "linux-arm64"),
        ("Linux", "aarch64", True, "linux-arm64-musl"),
        ("Darwin", "arm64", False, "darwin-arm64"),
        ("Darwin", "x86_64", True, "darwin-x64"),
    ],
)
def test_a_platform_has_the_name_that_vendors_use(system: str, machine: str, musl: bool, name: str) -> None:
    assert platform_name(system, machine, musl=musl) == name


def test_the_c_library_is_told_by_the_loader_of_a_program(tmp_path: Path) -> None:
    shell = Path("/bin/sh").read_bytes()
    loader = str(loader_of(Path("/bin/sh"))).encode()
    alpine = tmp_path / "sh"
    alpine.write_bytes(shell.replace(loader, b"/lib/ld-musl-x.so.1".ljust(len(loader), b"\0")))
    (tmp_path / "script").write_text("#!/bin/sh\n")
    (tmp_path / "cut").write_bytes(shell[:40])
    assert (is_musl(alpine), loader_of(tmp_path / "script"), loader_of(tmp_path / "cut")) == (True, None, None)
    assert this_platform(alpine) == f"{this_platform(tmp_path / 'script')}-musl"
