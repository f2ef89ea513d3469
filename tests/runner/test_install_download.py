"""Vendors' binaries: found by version and platform, checked and unpacked; a vendor who fails gives way to the next."""

import hashlib
import json
import re
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from ostler.base.errors import InstallFailed
from ostler.runner.installs.download import sha256_in
from ostler.runner.installs.platforms import is_musl, loader_of, platform_name, this_platform
from tests.support.installing import (
    PLATFORM,
    Handler,
    Vendor,
    begun,
    installer_in,
    npm_source,
    serving,
    tarball,
    zipped,
)

PROGRAM = b"#!/bin/sh\n# whatever it is asked, it starts\n"
SUM = hashlib.sha256(PROGRAM).hexdigest()
Pack = Callable[[dict[str, str]], bytes]
OTHER = hashlib.sha256(b"other").hexdigest()


@pytest.mark.parametrize("latest", [b"1.4.0\n", b'{"tag_name": "v1.4.0"}', b'{"tag_name": "rust-v1.4.0", "x": 1}'])
def test_the_newest_version_is_asked_for_and_installed(tmp_path: Path, latest: bytes) -> None:
    with serving() as vendor:
        vendor.files = {"/latest": latest, "/1.4.0/agent-x86": PROGRAM}
        made = installer_in(tmp_path).install("tiny", (vendor.source(),))
    assert (made.version, Path(made.path).read_bytes(), Path(made.path).stat().st_mode & 0o777) == (
        "1.4.0",
        PROGRAM,
        0o755,
    )


def test_a_wanted_version_is_fetched_without_asking_for_the_newest(tmp_path: Path) -> None:
    with serving() as vendor:
        vendor.files = {"/1.0.0/agent-x86": PROGRAM}
        made = installer_in(tmp_path).install("tiny", (vendor.source(),), version="1.0.0")
        assert (made.version, vendor.asked) == ("1.0.0", ["/1.0.0/agent-x86"])


@pytest.mark.parametrize(("kind", "pack"), [("tar.gz", tarball), ("zip", zipped)])
def test_the_program_is_taken_out_of_an_archive(tmp_path: Path, kind: str, pack: Pack) -> None:
    with serving() as vendor:
        vendor.files = {
            "/latest": b"1.0",
            "/1.0/agent-x86": pack({"agent-x86/bin/run": PROGRAM.decode(), "agent-x86/README": ""}),
        }
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
    vendor.files = {"/latest": b"1.0", "/1.0/agent-x86": PROGRAM, "/1.0/sums": checksum.encode()}


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
    files = {"/latest": b"1.0", "/1.0/agent-x86": PROGRAM}
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


def trickle(handler: Handler, head: bytes, released: threading.Event) -> None:
    """Say a byte now and then, for ever."""
    handler.wfile.write(head)
    with suppress(OSError):
        while not released.wait(0.05):
            handler.wfile.write(b"x")


@pytest.mark.parametrize("head", [b"HTTP/1.0 200 OK\r\nX-", b"HTTP/1.0 200 OK\r\nContent-Length: 999999999\r\n\r\n"])
def test_a_vendor_who_never_ends_is_given_up_while_there_is_time_for_the_next(tmp_path: Path, head: bytes) -> None:
    released, told = threading.Event(), list[str]()
    with serving() as vendor, serving() as other:
        vendor.files = {"/latest": b"1.0", "/1.0/agent-x86": lambda handler: trickle(handler, head, released)}
        other.files = {"/latest": b"2.0", "/2.0/agent-x86": PROGRAM}
        made = installer_in(tmp_path, seconds=3).install(
            "tiny", (vendor.source(), other.source()), progress=told.append
        )
        with pytest.raises(InstallFailed, match="longer than 1 seconds"):
            installer_in(tmp_path / "alone", seconds=1).install("tiny", (vendor.source(),))
        released.set()
    assert made.version == "2.0"
    assert [line for line in told if line.startswith("not from download: it took longer than 1.")] != []


def for_another_machine() -> bytes:
    """The shell of this machine, as it is linked with a C library that is not here."""
    shell, loader = Path("/bin/sh").read_bytes(), str(loader_of(Path("/bin/sh"))).encode()
    return shell.replace(loader, b"/lib/ld-musl-x.so.1".ljust(len(loader), b"\0"))


@pytest.mark.parametrize(
    ("program", "said"),
    [
        (for_another_machine(), "agent cannot be run (No such file or directory)"),
        (b"no program at all", "agent cannot be run (Exec format error)"),
        (b"#!/bin/sh\nkill -SEGV $$\n", "`agent --version` was ended by SIGSEGV"),
        (b"#!/bin/sh\necho no GLIBC_2.99; exit 127\n", "`agent --version` ended with 127: no GLIBC_2.99"),
    ],
    ids=["c-library", "no-program", "crash", "libraries"],
)
def test_a_binary_that_does_not_start_here_gives_way_to_the_next_source(
    tmp_path: Path, program: bytes, said: str
) -> None:
    told: list[str] = []
    with serving() as vendor:
        vendor.files = {"/latest": b"1.0", "/1.0/agent-x86": program}
        installer = installer_in(tmp_path)
        made = installer.install("tiny", (vendor.source(), npm_source(tmp_path)), progress=told.append)
        assert [(each.source, each.version) for each in installer.records("tiny")] == [("npm", made.version)]
        with pytest.raises(InstallFailed, match=re.escape(said)):
            installer.install("tiny", (vendor.source(),), anew=True)
        assert installer.current("tiny") == made, "what was there is still there"
    assert [line for line in told if line.startswith(f"not from download: {said}")] != []


def test_a_binary_is_tried_with_a_home_of_its_own_and_no_secret(tmp_path: Path) -> None:
    spy = f'#!/bin/sh\nenv >>"{tmp_path}/seen"; echo "$1" >>"{tmp_path}/asked"; [ "$1" = version ]\n'
    with serving() as vendor:
        vendor.files = {"/latest": b"1.0", "/1.0/agent-x86": spy.encode()}
        made = installer_in(tmp_path, environ={"OPENAI_API_KEY": "sk-1"}).install("tiny", (vendor.source(),))
    assert (tmp_path / "asked").read_text().split() == ["--version", "version"]
    seen = dict(line.partition("=")[::2] for line in (tmp_path / "seen").read_text().splitlines())
    assert "OPENAI_API_KEY" not in seen
    assert Path(seen["HOME"]).is_relative_to(Path(made.path).parents[1])


def test_a_page_of_a_proxy_is_not_taken_for_the_file(tmp_path: Path) -> None:
    def page(handler: Handler) -> None:
        handler.wfile.write(b"HTTP/1.0 200 OK\r\nContent-Type: text/html\r\n\r\n<html>Sign in</html>")

    told: list[str] = []
    with serving() as vendor:
        vendor.files = {"/latest": b"1.0", "/1.0/agent-x86": page}
        source = vendor.source(version="1.0", checksums={PLATFORM: SUM})
        made = installer_in(tmp_path).install("tiny", (source, npm_source(tmp_path)), progress=told.append)
    assert made.version == "1.2.3"
    assert "not from download: 127.0.0.1 answers with a page instead of the file" in told


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
    alpine = tmp_path / "sh"
    alpine.write_bytes(for_another_machine())
    (tmp_path / "script").write_text("#!/bin/sh\n")
    (tmp_path / "cut").write_bytes(shell[:40])
    assert (is_musl(alpine), loader_of(tmp_path / "script"), loader_of(tmp_path / "cut")) == (True, None, None)
    assert this_platform(alpine) == f"{this_platform(tmp_path / 'script')}-musl"
