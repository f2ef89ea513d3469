"""Looking for text in files, and for files by their names."""

import asyncio
import fnmatch
import re
import shlex
from collections.abc import Callable, Iterator, Sequence
from typing import Annotated

import msgspec

from ostler.agent.operations import ToolFailed
from ostler.agent.tools.files import RETRIES, SECONDS
from ostler.agent.tools.tool import CallContext, Input, Output, Tool

_MOST_MATCHES = 200
_LONGEST_LINE = 500
_MOST_FILES = 200
_MOST_LOOKED_AT = 200_000
_LONGEST_PATTERN = 1000
_MOST_ALTERNATIVES = 100
_BRACES = re.compile(r"(\{[^{}/]*\})")
_SECONDS = 30
_HAS_RIPGREP = "command -v rg >/dev/null"
_MOST_BYTES = 2**20
_MOST_ERRORS = 2000
_WRONG = 2
"""The code of a search that could not be made; 1 is for one that found nothing."""
TYPES = {
    "c": "c h",
    "cpp": "cc cpp cxx hpp hh hxx h",
    "css": "css scss",
    "go": "go",
    "html": "html htm",
    "java": "java",
    "js": "js jsx mjs cjs",
    "json": "json",
    "md": "md markdown",
    "py": "py pyi",
    "rb": "rb",
    "rust": "rs",
    "sh": "sh bash",
    "sql": "sql",
    "toml": "toml",
    "ts": "ts tsx mts cts",
    "yaml": "yaml yml",
}
_Folder = Annotated[str, msgspec.Meta(description="Where to look: a folder or a file; the whole workspace by default")]


class GrepInput(Input, frozen=True, kw_only=True):
    """What `grep` takes."""

    pattern: Annotated[str, msgspec.Meta(min_length=1, description="A regular expression for one line")]
    path: _Folder = "."
    glob: Annotated[str, msgspec.Meta(description="Only files with such names, as in *.py")] = ""
    type: Annotated[str, msgspec.Meta(description=f"Only files of one kind: {', '.join(TYPES)}")] = ""


class FindInput(Input, frozen=True, kw_only=True):
    """What `find` takes."""

    pattern: Annotated[
        str,
        msgspec.Meta(
            min_length=1,
            max_length=_LONGEST_PATTERN,
            description="Such as *.py, or with folders: src/**/test_*.py; ** is any folders",
        ),
    ]
    path: _Folder = "."


class _Found:
    """What a search prints, up to a limit."""

    def __init__(self) -> None:
        self.out = self.errors = b""
        self.enough = asyncio.Event()

    def __call__(self, fd: int, data: bytes) -> None:
        if fd == 2:
            self.errors = (self.errors + data)[:_MOST_ERRORS]
        elif not self.enough.is_set():
            self.out += data
            if self.out.count(b"\n") > _MOST_MATCHES or len(self.out) > _MOST_BYTES:
                self.enough.set()

    def lines(self) -> tuple[list[str], bool]:
        """The matches, and whether there are more."""
        lines = self.out.decode(errors="replace").splitlines()
        short = [line.removeprefix("./")[: _LONGEST_LINE + 200] for line in lines[:_MOST_MATCHES]]
        return short, self.enough.is_set()


async def _grep(given: GrepInput, context: CallContext) -> Output:
    if given.type and given.type not in TYPES:
        raise ToolFailed(f"There is no type '{given.type}'. Possible: {', '.join(TYPES)}.")
    place = f"./{await asyncio.to_thread(context.workspace.place, given.path)}".removesuffix("/.")
    command = f"{_HAS_RIPGREP} && exec {shlex.join(_ripgrep(given, place))}; exec {shlex.join(_plain(given, place))}"
    found = _Found()
    try:
        async with (
            asyncio.timeout(_SECONDS),
            context.workspace.run(command, found, environ=context.environ, seconds=_SECONDS, wrap=_in_shell) as running,
        ):
            over = (asyncio.ensure_future(running.ended()), asyncio.ensure_future(found.enough.wait()))
            try:
                await asyncio.wait(over, return_when=asyncio.FIRST_COMPLETED)
            finally:
                for each in over:
                    each.cancel()
            if running.has_ended:
                await running.drained(1)
                if await running.ended() >= _WRONG and not found.out:
                    raise ToolFailed(f"The search failed: {found.errors.decode(errors='replace').strip()}")
    except TimeoutError:
        raise ToolFailed(f"The search took longer than {_SECONDS} seconds. Look in a smaller folder.") from None
    lines, cut = found.lines()
    if not lines:
        return Output(text="Nothing was found.")
    note = [f"[only the first {_MOST_MATCHES} matches; look for less]"] if cut else []
    return Output(text="\n".join([*sorted(lines, key=_place_of), *note]))


def _in_shell(command: str) -> Sequence[str]:
    return ("sh", "-c", command)


def _ripgrep(given: GrepInput, place: str) -> list[str]:
    words = ["rg", "--no-config", "--no-heading", "--with-filename", "--line-number", "--color=never", "--hidden"]
    words += ["--max-columns", str(_LONGEST_LINE), "--max-columns-preview", "--glob", "!.git"]
    for pattern in _globs(given):
        words += ["--glob", pattern]
    return [*words, "--regexp", given.pattern, "--", place]


def _plain(given: GrepInput, place: str) -> list[str]:
    names = [f"--include={pattern}" for pattern in _globs(given)]
    return ["grep", "-rnHIE", "--color=never", "--exclude-dir=.git", *names, "-e", given.pattern, "--", place]


def _globs(given: GrepInput) -> list[str]:
    return [given.glob] if given.glob else [f"*.{ending}" for ending in TYPES.get(given.type, "").split()]


def _place_of(line: str) -> tuple[str, int]:
    path, _, rest = line.partition(":")
    number = rest.partition(":")[0]
    return path, int(number) if number.isdigit() else 0


def _find(given: FindInput, context: CallContext) -> Output:
    place = context.workspace.place(given.path)
    fits = _matcher(given.pattern.removeprefix("./"))
    is_name = "/" not in given.pattern
    found: list[tuple[float, str]] = []
    looked = 0
    for looked, file in enumerate(context.workspace.files(place), 1):
        if fits(file.path.rpartition("/")[2] if is_name else file.path):
            found.append((file.changed_at, file.path))
        if looked > _MOST_LOOKED_AT:
            break
    if not found:
        return Output(text="No file has such a name.")
    found.sort(key=lambda each: (-each[0], each[1]))
    prefix = "" if place == "." else f"{place}/"
    shown = [f"{prefix}{path}" for _, path in found[:_MOST_FILES]]
    left = len(found) - len(shown)
    notes = [f"[{left} older files left out]"] if left else []
    notes += [f"[only the first {_MOST_LOOKED_AT} files were looked at]"] if looked > _MOST_LOOKED_AT else []
    return Output(text="\n".join([*shown, *notes]))


_ANY_FOLDERS = "**"
_Fits = Callable[[str], object]


def _matcher(pattern: str) -> Callable[[str], bool]:
    """Whether a path fits; takes no longer for a pattern that was made to."""
    kinds = [_folders(each) for each in _alternatives(pattern)]
    return lambda path: any(_fits(folders, path.split("/")) for folders in kinds)


def _alternatives(pattern: str) -> list[str]:
    """What a pattern means without its braces."""
    patterns = [""]
    for piece in _BRACES.split(pattern):
        endings = piece[1:-1].split(",") if _BRACES.fullmatch(piece) else [piece]
        patterns = [before + ending for before in patterns for ending in endings]
        if len(patterns) > _MOST_ALTERNATIVES:
            raise ToolFailed(f"'{pattern}' means more than {_MOST_ALTERNATIVES} names. Look for fewer at a time.")
    return patterns


def _folders(pattern: str) -> list[_Fits | None]:
    """The parts of a pattern between slashes; None is any folders, and none of them follows another."""
    found: list[_Fits | None] = []
    for name in pattern.split("/"):
        if name != _ANY_FOLDERS:
            found.append(re.compile(fnmatch.translate(name)).match)
        elif not found or found[-1] is not None:
            found.append(None)
    return found


def _fits(wanted: Sequence[_Fits | None], path: Sequence[str]) -> bool:
    """All ways of fitting are followed at the same time, so there is no going back."""
    at = _and_none(wanted, {0})
    for name in path:
        at = _and_none(wanted, {after for each in at for after in _after(wanted, each, name)})
    return len(wanted) in at


def _after(wanted: Sequence[_Fits | None], at: int, name: str) -> Iterator[int]:
    fits = wanted[at] if at < len(wanted) else _nothing
    if fits is None:
        yield at
    elif fits(name):
        yield at + 1


def _nothing(_: str) -> bool:
    return False


def _and_none(wanted: Sequence[_Fits | None], at: set[int]) -> set[int]:
    """Any folders may also be none."""
    return at | {each + 1 for each in at if each < len(wanted) and wanted[each] is None}


async def _run_find(given: FindInput, context: CallContext) -> Output:
    return await asyncio.to_thread(_find, given, context)


GREP = Tool(
    name="grep",
    description=(
        "Look for a regular expression in the files of the workspace. Each line of the answer is PATH:LINE:TEXT, "
        "sorted by path, at most 200 of them; long lines are cut. Binary files and `.git` are left out. Say with "
        "`path`, `glob` or `type` where to look when there would be too many. Several searches can run at the same "
        "time. To look for files by their names use `find`."
    ),
    input=GrepInput,
    run=_grep,
    seconds=_SECONDS * 2,
    retries=RETRIES,
)
FIND = Tool(
    name="find",
    description=(
        "Find files of the workspace by their names, the newest first, at most 200. A pattern without a slash is about "
        "the name alone, in any folder; one with a slash is about the path below `path`. `.git` is left out. To look "
        "for what is in files use `grep`."
    ),
    input=FindInput,
    run=_run_find,
    seconds=SECONDS,
    retries=RETRIES,
)
