"""Files of a workspace: what clients can do with them, and that nothing leads out of the tree."""

import asyncio
import ctypes
import errno
import itertools
import os
import tempfile
import threading
import time
from collections.abc import AsyncIterator, Callable
from functools import partial
from pathlib import Path

import pytest

from ostler.base.beneath import open_beneath, open_by_steps
from ostler.base.errors import FileMissing, InvalidRequest, OstlerError, PathRefused
from ostler.runner.file_trees.trees import remove_tree
from ostler.runner.workspaces.files import READ_BYTES, Files
from ostler.runner.workspaces.library import WorkspaceLibrary
from ostler.runner.workspaces.orders import EmptySource, Order
from ostler.runner.workspaces.searching import SearchLimits, search
from ostler.wire.provisioning import FileQuery
from tests.support.places import inside, opened

MAGIC_LINK = str(Path("/proc/self", "root", "etc", "passwd"))

_CANARY = "the canary outside"
_FILES = {"a.txt": "alpha\nbeta\n", "src/b.py": "print('Beta')\n", "src/deep/c.py": "pass\n", ".hidden": "h\n"}
_PATHS_OUT = [
    "/etc/passwd",
    "..",
    "../canary",
    "../../canary",
    "src/../../canary",
    "./../canary",
    "src/deep/../../../canary",
    "%2e%2e/canary",
    "%2E%2E%2Fcanary",
    "..%2fcanary",
    "..%5ccanary",
    "..\\canary",
    "src\\..\\..\\canary",
    "a.txt\0",
    "\0",
    "a" * 5000,
    "/" * 3 + "etc/passwd",
    "//etc/passwd",
    "src/./.././../canary",
]


class Yard:
    """A workspace, and a file beside it that nobody may reach."""

    def __init__(self, service: WorkspaceLibrary, workspace: str, canary: Path) -> None:
        self.service, self.workspace, self.canary = service, workspace, canary

    async def do(self, use: Callable[[Files], object]) -> object:
        return await self.service.files.use(self.workspace, use)

    async def read(self, path: str) -> bytes:
        return await self.service.files.use(self.workspace, lambda files: files.read(path).data)

    async def write(self, path: str, data: bytes) -> None:
        await self.do(lambda files: files.write(path, data))

    async def sh(self, script: str) -> str:
        return await inside(self.service, self.workspace, script)


@pytest.fixture(params=["overlay", "copy"])
async def yard(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Yard]:
    async with opened(tmp_path / "state") as service:
        workspace = await service.create(
            Order(source=EmptySource(files=_FILES), providers=(request.param,), strict=True)
        )
        canary = Path(workspace.path).parent / "canary"
        canary.write_text(_CANARY)
        yield Yard(service, workspace.id, canary)


async def test_a_folder_is_listed(yard: Yard) -> None:
    await yard.sh("ln -s a.txt link; mkfifo pipe; chmod +x src/b.py")
    listing = await yard.service.files.use(yard.workspace, lambda files: files.list())
    found = [(entry.path, entry.kind, entry.size, entry.target) for entry in listing.entries]
    assert found == [
        (".hidden", "file", 2, None),
        ("a.txt", "file", 11, None),
        ("link", "link", 0, "a.txt"),
        ("pipe", "other", 0, None),
        ("src", "folder", 0, None),
    ]
    inner = await yard.service.files.use(yard.workspace, lambda files: files.list("src", limit=1))
    assert ([(entry.path, entry.executable) for entry in inner.entries], inner.truncated) == (
        [("src/b.py", True)],
        True,
    )


async def test_a_file_is_read_in_pieces(yard: Yard) -> None:
    def read(files: Files) -> list[bytes]:
        pieces = [files.read("a.txt", offset=at, length=4) for at in (0, 4, 8, 100)]
        assert {piece.size for piece in pieces} == {11}
        return [piece.data for piece in pieces]

    assert await yard.do(read) == [b"alph", b"a\nbe", b"ta\n", b""]
    await yard.sh(f"truncate -s {READ_BYTES * 3} huge")
    assert await yard.do(lambda files: len(files.read("huge").data)) == READ_BYTES


async def test_a_file_is_written_whole_and_keeps_its_mode(yard: Yard) -> None:
    await yard.sh("chmod 750 src/b.py")
    await yard.do(lambda files: files.write("src/b.py", b"new"))
    await yard.do(lambda files: files.write("made/for/it.sh", b"#!/bin/sh\n", executable=True))
    assert await yard.sh("cat src/b.py; stat -c ' %a' src/b.py made/for/it.sh; ls -A src") == (
        "new 750\n 755\nb.py\ndeep\n"
    )


async def test_what_the_server_writes_the_agent_sees_and_the_other_way_round(yard: Yard) -> None:
    await yard.do(lambda files: files.write("from-server", b"s"))
    await yard.sh("cat from-server && echo agent > from-agent && rm a.txt")
    assert await yard.do(lambda files: files.read("from-agent").data) == b"agent\n"
    with pytest.raises(FileMissing, match=r"no file 'a.txt'"):
        await yard.do(lambda files: files.read("a.txt"))


async def test_files_and_empty_folders_are_removed(yard: Yard) -> None:
    await yard.do(lambda files: files.remove("src/deep/c.py"))
    await yard.do(lambda files: files.remove("src/deep"))
    with pytest.raises(InvalidRequest, match="not empty"):
        await yard.do(lambda files: files.remove("src"))
    with pytest.raises(InvalidRequest, match="root cannot be removed"):
        await yard.do(lambda files: files.remove("."))
    assert await yard.sh("ls src") == "b.py\n"


@pytest.mark.parametrize("path", _PATHS_OUT)
async def test_a_path_that_leads_out_is_refused(yard: Yard, path: str) -> None:
    actions: list[Callable[[Files], object]] = [
        lambda files: files.read(path),
        lambda files: files.list(path),
        lambda files: files.stat(path),
        lambda files: files.write(path, b"overwritten"),
        lambda files: files.remove(path),
    ]
    for action in actions:
        with pytest.raises(InvalidRequest):
            await yard.do(action)
    assert yard.canary.read_text() == _CANARY


@pytest.mark.parametrize("target", ["/etc/passwd", "../canary", MAGIC_LINK, "/proc/self/cwd"])
async def test_a_link_that_leads_out_is_not_followed(yard: Yard, target: str) -> None:
    await yard.sh(f"ln -s {target} out; ln -s {target} src/out; ln -s out again")
    for name in ("out", "src/out", "again"):
        with pytest.raises((PathRefused, FileMissing)):
            await yard.read(name)
    assert await yard.do(lambda files: files.stat("out").kind) == "link"
    await yard.do(lambda files: files.write("out", b"a file now"))  # the link is replaced, not followed
    assert (await yard.sh("cat out"), yard.canary.read_text()) == ("a file now", _CANARY)


def _call(action: Callable[[Files, str], object], path: str, files: Files) -> object:
    return action(files, path)


async def test_a_folder_link_that_leads_out_is_not_followed(yard: Yard) -> None:
    await yard.sh("ln -s .. up; ln -s /etc etc; ln -s up/.. higher")
    for path in ("up/canary", "etc/passwd", "higher/canary"):
        for action in (Files.read, Files.stat, Files.list, Files.remove):
            with pytest.raises(PathRefused, match="leads out"):
                await yard.do(partial(_call, action, path))
        with pytest.raises(PathRefused, match="leads out"):
            await yard.write(path, b"overwritten")
    assert yard.canary.read_text() == _CANARY


async def test_a_link_that_stays_inside_is_followed(yard: Yard) -> None:
    await yard.sh("ln -s src/deep short; ln -s ../../a.txt src/deep/up.txt")
    assert await yard.do(lambda files: files.read("short/c.py").data) == b"pass\n"
    assert await yard.do(lambda files: files.read("short/up.txt").data) == b"alpha\nbeta\n"
    await yard.do(lambda files: files.write("short/new.py", b"n"))
    assert await yard.sh("cat src/deep/new.py") == "n"


async def test_pipes_devices_and_sockets_are_not_read(yard: Yard) -> None:
    await yard.sh(
        "mkfifo pipe; python3 -c 'import socket; socket.socket(socket.AF_UNIX).bind(\"socket\")'; ln -s /dev/zero zero"
    )
    for name in ("pipe", "socket", "src", "zero"):
        with pytest.raises(PathRefused):
            await yard.read(name)


async def test_a_search_is_bounded_and_takes_its_text_literally(yard: Yard) -> None:
    await yard.sh(
        "echo 'a.*b (' > odd.txt; printf 'beta\\000' > binary; mkdir -p .git && echo beta > .git/x; ln -s /etc out"
    )

    def find(**query: object) -> Callable[[Files], list[tuple[str, int, str]]]:
        asked = FileQuery(**query)  # type: ignore[arg-type]  # each test says what it needs
        return lambda files: [(match.path, match.line, match.text) for match in search(files, asked).matches]

    assert await yard.do(find(text="a.*b (")) == [("odd.txt", 1, "a.*b (")]
    assert await yard.do(find(text="beta")) == [("a.txt", 2, "beta")]
    assert await yard.do(find(text="beta", ignore_case=True, name="src/*")) == [("src/b.py", 1, "print('Beta')")]
    assert await yard.do(find(text="", name="*.py")) == [("src/b.py", 0, ""), ("src/deep/c.py", 0, "")]
    await yard.sh("seq 1000 > numbers")
    result = await yard.service.files.use(yard.workspace, lambda files: search(files, FileQuery(text="1", matches=5)))
    assert (len(result.matches), result.truncated) == (5, True)
    out_of_time = await yard.service.files.use(
        yard.workspace, lambda files: search(files, FileQuery(text="1"), SearchLimits(seconds=0))
    )
    assert (out_of_time.matches, out_of_time.truncated) == ((), True)


def _exchange(left: Path, right: Path) -> None:
    """Swap two names in one step."""
    at = ctypes.CDLL(None, use_errno=True).renameat2
    if at(-100, os.fsencode(left), -100, os.fsencode(right), 2) != 0:
        raise OSError(ctypes.get_errno(), "renameat2")


def _falls_for_it(root: Path) -> bool:
    """A check of the resolved path before reading, as one would write it without thinking of races."""
    try:
        return (root / "d").resolve() == root / "d" and (root / "d" / "f").read_text() == "outside"
    except OSError:
        return False


def _tried(opener: Callable[..., int], at: int) -> bytes | int:
    """What is read, or the number of the error."""
    try:
        file = opener(at, "d/f", os.O_RDONLY)
    except OSError as error:
        return error.errno or 0
    with os.fdopen(file, "rb") as content:
        return content.read()


@pytest.mark.parametrize("opener", [open_beneath, open_by_steps])
def test_no_race_of_renames_leads_out(opener: Callable[..., int], tmp_path: Path) -> None:
    root, out = tmp_path / "root", tmp_path / "out"
    for folder in (root / "d", out):
        folder.mkdir(parents=True)
    (root / "d" / "f").write_text("inside")
    (out / "f").write_text("outside")
    (root / "l").symlink_to(out)
    done = threading.Event()

    def swap() -> None:
        while not done.is_set():
            _exchange(root / "d", root / "l")

    racer = threading.Thread(target=swap)
    racer.start()
    at = os.open(root, os.O_PATH)
    seen: set[bytes | int] = set()
    fell = False
    deadline = time.monotonic() + 60
    try:
        for number in itertools.count():
            seen.add(_tried(opener, at))
            fell |= _falls_for_it(root)
            if time.monotonic() > deadline or (number > 3000 and fell and len(seen) > 1):
                break
    finally:
        done.set()
        racer.join()
        os.close(at)
    assert fell, "the race must be one"
    assert b"inside" in seen
    assert seen <= {b"inside", errno.ELOOP, errno.EXDEV, errno.ENOTDIR, errno.EAGAIN}


async def test_a_write_into_a_folder_that_is_swapped_for_a_link_stays_inside(yard: Yard) -> None:
    await yard.sh("mkdir d; ln -s .. l")
    entry = await yard.service.entry(yard.workspace)
    script = (
        "import ctypes,os\nc=ctypes.CDLL(None)\nprint(1,flush=True)\nwhile True: c.renameat2(-100,b'd',-100,b'l',2)"
    )
    racer = await _started(entry.command(("python3", "-c", script)), entry.folder)
    wrote = refused = 0
    try:
        deadline = time.monotonic() + 2
        while time.monotonic() < deadline:
            try:
                await yard.do(lambda files: files.write("d/canary", b"written"))
                wrote += 1
            except OstlerError:
                refused += 1
    finally:
        racer.kill()
        await racer.wait()
    assert (bool(wrote), bool(refused), yard.canary.read_text()) == (True, True, _CANARY)


async def _started(command: tuple[str, ...], folder: str) -> "asyncio.subprocess.Process":
    process = await asyncio.create_subprocess_exec(*command, cwd=folder, stdout=asyncio.subprocess.PIPE)
    assert process.stdout is not None
    await asyncio.wait_for(process.stdout.readline(), 60)
    return process


async def test_whatever_time_an_agent_gives_a_file_it_is_listed() -> None:
    with tempfile.TemporaryDirectory(dir="/dev/shm") as place:  # which takes any time
        for name, second in (("future", 300_000_000_000), ("past", -100_000_000_000), ("now", 1_800_000_000)):
            Path(place, name).touch()
            os.utime(Path(place, name), (second, second))
        with Files(os.open(place, os.O_RDONLY | os.O_DIRECTORY)) as files:
            found = {entry.path: entry.modified_at for entry in files.list().entries}
            assert found == {
                "future": "9999-12-31T23:59:59.000Z",
                "past": "0001-01-01T00:00:00.000Z",
                "now": "2027-01-15T08:00:00.000Z",
            }


def test_a_file_with_the_longest_name_is_written_and_gives_no_more_rights_than_it_had(tmp_path: Path) -> None:
    name = "\N{SNOWMAN}" * 85
    (tmp_path / name).touch()
    (tmp_path / name).chmod(0o6755)
    with Files(os.open(tmp_path, os.O_RDONLY | os.O_DIRECTORY)) as files:
        files.write(name, b"content")
    assert (tmp_path / name).read_bytes() == b"content"
    assert (tmp_path / name).stat().st_mode & 0o7777 == 0o755


def test_folders_that_are_too_deep_are_refused_in_words(tmp_path: Path) -> None:
    at = os.open(tmp_path, os.O_RDONLY | os.O_DIRECTORY)
    for _ in range(2000):
        os.mkdir("d", dir_fd=at)
        below = os.open("d", os.O_RDONLY | os.O_DIRECTORY, dir_fd=at)
        os.close(at)
        at = below
    os.close(at)
    with (
        Files(os.open(tmp_path, os.O_RDONLY | os.O_DIRECTORY)) as files,
        pytest.raises(InvalidRequest, match=r"cannot be used|one in the other"),
    ):
        files.remove("d", recursive=True)
    remove_tree(tmp_path / "d")


def test_a_search_ends_in_time_also_where_nothing_has_the_name(tmp_path: Path) -> None:
    for number in range(10):
        (tmp_path / f"file-{number}").touch()
    with Files(os.open(tmp_path, os.O_RDONLY | os.O_DIRECTORY)) as files:
        found = search(files, FileQuery(text="", name="*.none"), SearchLimits(seconds=0))
    assert (found.matches, found.truncated) == ((), True)


async def test_who_stops_waiting_for_files_leaves_none_open(tmp_path: Path) -> None:
    async with opened(tmp_path) as service:
        made = await service.create(Order(source=EmptySource()))
        gate = threading.Event()
        await service.files.list(made.id, "", 10)
        before = len(list(Path("/proc/self/fd").iterdir()))
        held = asyncio.create_task(service.threads.alone(made.id, gate.wait))
        calls = [asyncio.create_task(service.files.list(made.id, "", 10)) for _ in range(5)]
        await asyncio.sleep(0)
        for call in calls:
            call.cancel()
        await asyncio.wait(calls)
        gate.set()
        await held
        await service.files.list(made.id, "", 10)
        assert len(list(Path("/proc/self/fd").iterdir())) <= before
