"""Conversations that a program has in files of lines. Everything here blocks."""

import shutil
from collections.abc import Iterator, Mapping
from contextlib import suppress
from itertools import islice
from pathlib import Path, PurePosixPath

import msgspec

from ostler.base.errors import Unprocessable
from ostler.base.private import make_folder
from ostler.runner.imports.chats import Chat, Line, moment
from ostler.runner.imports.formats import Format
from ostler.runner.imports.limits import MOST_BYTES, MOST_LISTED, refuse_above
from ostler.wire.agents import Conversation, EarlierTalk

_HEAD_LINES = 60
_HEAD_BYTES = 8 * 2**20
_LONGEST_LINE = 2**20


class Files:
    """The conversations of one program, one file for each."""

    def __init__(self, agent: str, form: Format) -> None:
        self._agent = agent
        self._form = form

    def found(self, home: Path, environ: Mapping[str, str]) -> Iterator[Conversation]:
        """Those that can be gone on with."""
        root = self._form.root(home, environ)
        seen: set[str] = set()
        for file in _newest(root, self._form):
            chat, changed = _head(root, file, self._form), _changed(root / file)
            if changed is None or chat is None or chat.id in seen:
                continue
            if chat.id and chat.folder and chat.title:
                seen.add(chat.id)
                yield Conversation(
                    agent=self._agent,
                    conversation_id=chat.id,
                    title=chat.title,
                    folder=chat.folder,
                    updated_at=changed,
                )

    def bring(self, home: Path, environ: Mapping[str, str], conversation_id: str, into: Path) -> EarlierTalk | None:
        """Copy one into the home of a session; gives what was said, or None if there is no such conversation."""
        root, form = self._form.root(home, environ), self._form
        file = next((each for each in _newest(root, form) if _is(root, each, form, conversation_id)), None)
        if file is None:
            return None
        source = (root / file).parents[form.levels - 1] if form.levels else root / file
        refuse_above(MOST_BYTES, conversation_id, _size(source))
        try:
            chat = form.begin(root, file)
            for line in _lines(root / file):
                _read(form, chat, line)
            _copy(root, file, form, into / form.folder)
        except (OSError, shutil.Error) as error:
            raise Unprocessable(reason=f"The conversation cannot be copied: {_why(error)}.") from error
        return chat.whole()


def _copy(root: Path, file: PurePosixPath, form: Format, into: Path) -> None:
    target = into / (form.place or file)
    if form.levels:
        folder, copied = (root / file).parents[form.levels - 1], target.parents[form.levels - 1]
        make_folder(copied.parent)
        shutil.copytree(folder, copied, ignore=_only_files, dirs_exist_ok=True)
    else:
        make_folder(target.parent)
        shutil.copy2(root / file, target)
    for name in form.companions(file):
        if (root / name).is_file() and not (root / name).is_symlink():
            make_folder((into / name).parent)
            shutil.copy2(root / name, into / name)
    if form.adapt is not None:
        form.adapt(root / file, target)


def _only_files(folder: str, names: list[str]) -> set[str]:
    """What is left out: links may lead anywhere, and pipes may never end."""
    paths = {name: Path(folder) / name for name in names}
    return {name for name, path in paths.items() if path.is_symlink() or not (path.is_file() or path.is_dir())}


def _changed(file: Path) -> str | None:
    """When a file was changed last; None if its program has removed it meanwhile, or no calendar has that day."""
    with suppress(OSError, OverflowError, ValueError):
        return moment(file.stat().st_mtime)
    return None


def _size(source: Path) -> int:
    files = [source] if source.is_file() else [each for each in source.rglob("*") if not each.is_symlink()]
    return sum(each.stat().st_size for each in files if each.is_file())


def _why(error: OSError | shutil.Error) -> str:
    """A failed copy of a folder names every file that failed, and says nothing of its own."""
    if isinstance(error, shutil.Error) and error.args and isinstance(error.args[0], list) and error.args[0]:
        _, _, reason = error.args[0][0]
        return str(reason)
    return error.strerror or str(error) or type(error).__name__


def _newest(root: Path, form: Format) -> list[PurePosixPath]:
    """Its files, relative to its folder; links may lead anywhere and pipes may never end, so they are left out."""
    dated: list[tuple[float, Path]] = []
    for file in root.glob(form.pattern):
        with suppress(OSError):
            if not file.is_symlink() and file.is_file() and file.resolve().is_relative_to(root.resolve()):
                dated.append((file.stat().st_mtime, file))
    dated.sort(reverse=True)
    return [PurePosixPath(file.relative_to(root)) for _, file in dated[:MOST_LISTED]]


def _is(root: Path, file: PurePosixPath, form: Format, conversation_id: str) -> bool:
    chat = _head(root, file, form)
    return chat is not None and chat.id == conversation_id


def _head(root: Path, file: PurePosixPath, form: Format) -> Chat | None:
    """What the beginning of a file tells; None if it is not what it looks like."""
    with suppress(OSError, msgspec.MsgspecError, UnicodeError):
        chat = form.begin(root, file)
        for line in islice(_lines(root / file, _HEAD_BYTES), _HEAD_LINES):
            _read(form, chat, line)
            if chat.is_known():
                return chat
    return None


def _read(form: Format, chat: Chat, line: Line) -> None:
    """Take a line; one that another version wrote in another way tells nothing."""
    with suppress(AttributeError, KeyError, TypeError, ValueError):
        form.read(chat, line)


def _lines(file: Path, most: int = MOST_BYTES) -> Iterator[Line]:
    """The lines that are JSON objects; a program may be writing the last one, and any may be damaged or endless."""
    with file.open("rb") as opened:
        while most > 0 and (text := opened.readline(_LONGEST_LINE)):
            most -= len(text)
            with suppress(ValueError, RecursionError):
                found = msgspec.json.decode(text)
                if isinstance(found, dict):
                    yield found
