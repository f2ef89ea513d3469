"""Finds conversations in a home folder, and copies one into the home of a session. Everything here blocks."""

import shutil
from collections.abc import Iterator, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path, PurePosixPath

import msgspec

from ostler.base.errors import Unprocessable
from ostler.base.errors.runners import ConversationNotFound
from ostler.base.private import make_folder
from ostler.runner.imports.chats import Chat, Line
from ostler.runner.imports.formats import FORMATS, Format
from ostler.wire.agents import Conversation, EarlierTalk

_MOST_FILES = 200
"""Of each agent, the newest."""
_HEAD_LINES = 60
_LONGEST_LINE = 2**20
_MOST_BYTES = 256 * 2**20
_LONGEST_TITLE = 80


def conversation(home: Path, environ: Mapping[str, str], agent: str, conversation_id: str) -> Conversation:
    """One of them."""
    form = FORMATS.get(agent)
    for each in _of_agent(form.root(home, environ), agent, form) if form is not None else ():
        if each.conversation_id == conversation_id:
            return each
    raise ConversationNotFound(agent=agent, conversation=conversation_id[:200])


def conversations(home: Path, environ: Mapping[str, str]) -> list[Conversation]:
    """Those that can be gone on with, the newest first."""
    roots = [(agent, form, form.root(home, environ)) for agent, form in FORMATS.items()]
    found = [each for agent, form, root in roots for each in _of_agent(root, agent, form)]
    return sorted(found, key=lambda each: each.updated_at, reverse=True)


def _of_agent(root: Path, agent: str, form: Format) -> Iterator[Conversation]:
    seen: set[str] = set()
    for file in _newest(root, form):
        chat = _head(root, file, form)
        if chat is not None and chat.id not in seen and chat.id and chat.folder and chat.title:
            seen.add(chat.id)
            yield Conversation(
                agent=agent,
                conversation_id=chat.id,
                title=_short(chat.title),
                folder=chat.folder,
                updated_at=_changed(root / file),
            )


def bring(home: Path, environ: Mapping[str, str], agent: str, conversation_id: str, into: Path) -> EarlierTalk:
    """Copy a conversation into the home of a session, where the agent finds it again; gives what was said."""
    form = FORMATS.get(agent)
    if form is None:
        raise ConversationNotFound(agent=agent, conversation=conversation_id[:200])
    root = form.root(home, environ)
    file = next((each for each in _newest(root, form) if _is(root, each, form, conversation_id)), None)
    if file is None:
        raise ConversationNotFound(agent=agent, conversation=conversation_id[:200])
    source = root / file
    if (size := source.stat().st_size) > _MOST_BYTES:
        reason = f"it has {size} bytes, and only up to {_MOST_BYTES} can be taken over"
        raise Unprocessable(
            reason=f"conversationId '{conversation_id}': {reason}.", errors={"conversationId": [reason]}
        )
    chat = Chat()
    for line in _lines(source):
        _read(form, chat, line)
    _copy(root, file, form, into / form.folder)
    return chat.whole()


def _copy(root: Path, file: PurePosixPath, form: Format, into: Path) -> None:
    target = into / (form.place or file)
    try:
        make_folder(target.parent)
        if form.whole_folder:
            shutil.copytree((root / file).parent, target.parent, symlinks=True, dirs_exist_ok=True)
        else:
            shutil.copy2(root / file, target)
        for name in form.companions(file):
            if (root / name).is_file():
                make_folder((into / name).parent)
                shutil.copy2(root / name, into / name)
    except OSError as error:
        raise Unprocessable(reason=f"The conversation cannot be copied: {error.strerror}.") from error


def _newest(root: Path, form: Format) -> list[PurePosixPath]:
    """Its files, relative to its folder; links may lead anywhere and pipes may never end, so they are left out."""
    dated: list[tuple[float, Path]] = []
    for file in root.glob(form.pattern):
        with suppress(OSError):
            if not file.is_symlink() and file.is_file() and file.resolve().is_relative_to(root.resolve()):
                dated.append((file.stat().st_mtime, file))
    dated.sort(reverse=True)
    return [PurePosixPath(file.relative_to(root)) for _, file in dated[:_MOST_FILES]]


def _is(root: Path, file: PurePosixPath, form: Format, conversation_id: str) -> bool:
    chat = _head(root, file, form)
    return chat is not None and chat.id == conversation_id


def _head(root: Path, file: PurePosixPath, form: Format) -> Chat | None:
    """What the beginning of a file tells; None if it is not what it looks like."""
    chat = Chat()
    with suppress(OSError):
        chat.folder = form.folder_note(root, file)
        for line in islice(_lines(root / file), _HEAD_LINES):
            _read(form, chat, line)
            if chat.is_known():
                return chat
    return None


def _read(form: Format, chat: Chat, line: Line) -> None:
    """Take a line; one that another version wrote in another way tells nothing."""
    with suppress(AttributeError, KeyError, TypeError, ValueError):
        form.read(chat, line)


def _lines(file: Path) -> Iterator[Line]:
    """The lines that are JSON objects; a program may be writing the last one, and any may be damaged."""
    with file.open("rb") as opened:
        while text := opened.readline(_LONGEST_LINE):
            with suppress(ValueError, RecursionError):
                found = msgspec.json.decode(text)
                if isinstance(found, dict):
                    yield found


def _short(title: str) -> str:
    line = " ".join(title.split())
    return line if len(line) <= _LONGEST_TITLE else line[: _LONGEST_TITLE - 1].rstrip() + "…"


def _changed(file: Path) -> str:
    return datetime.fromtimestamp(file.stat().st_mtime, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
