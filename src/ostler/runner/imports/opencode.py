"""OpenCode's conversations, which are all in one SQLite database. Everything here blocks."""

import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from urllib.parse import quote

import msgspec

from ostler.base.errors import Unprocessable
from ostler.base.private import make_database, make_folder
from ostler.runner.imports.chats import Chat, Line, moment
from ostler.runner.imports.limits import MOST_BYTES, MOST_LISTED, refuse_above
from ostler.wire.agents import Conversation, EarlierTalk

_AGENT = "opencode"
_FOLDER = ".local/share/opencode"
_FILE = "opencode.db"
_SECONDS = 5.0
"""How long a program that writes at this moment is waited for."""
_UNNAMED = "New session - "
_SESSIONS = (
    "SELECT id, directory, title, time_updated FROM session"
    " WHERE parent_id IS NULL AND time_archived IS NULL ORDER BY time_updated DESC LIMIT ?"
)
_FAMILY = (
    "WITH RECURSIVE family(id) AS (SELECT id FROM session WHERE id = ?"
    " UNION SELECT session.id FROM session JOIN family ON session.parent_id = family.id)"
)
"""A conversation, and those that its helpers had."""
_MESSAGES = "SELECT id, data FROM message WHERE session_id = ? ORDER BY time_created, id"
_PARTS = "SELECT data FROM part WHERE message_id = ? ORDER BY id"
_FIRST_MESSAGES = 20
_OWNERS = ("session_id", "aggregate_id")
"""Columns that say which conversation a row belongs to."""
_WHOLE_TABLES = ("migration", "data_migration", "__drizzle_migrations")
"""What says which version the database has: the session's program brings it to its own."""


class OpenCodeDatabase:
    """The database in the data folder of a user; it is only read, and whoever writes into it never waits."""

    def found(self, home: Path, environ: Mapping[str, str]) -> Iterator[Conversation]:
        """Those that can be gone on with."""
        with suppress(sqlite3.Error, OSError), _opened(_place(home, environ)) as database:
            for row in database.execute(_SESSIONS, (MOST_LISTED,)).fetchall():
                each = _listed(database, *row)
                if each is not None:
                    yield each

    def bring(self, home: Path, environ: Mapping[str, str], conversation_id: str, into: Path) -> EarlierTalk | None:
        """Copy one into a database of the session's own; gives what was said, or None if it is not there."""
        target = into / _FOLDER / _FILE
        try:
            with _opened(_place(home, environ)) as database:
                if database.execute("SELECT 1 FROM session WHERE id = ?", (conversation_id,)).fetchone() is None:
                    return None
                refuse_above(MOST_BYTES, conversation_id, _size(database, conversation_id))
                talk = _chat(database, conversation_id).whole()
                make_folder(target.parent)
                make_database(target)
                _copy(database, conversation_id, target)
        except (sqlite3.Error, OSError) as error:
            raise Unprocessable(reason=f"The conversation cannot be copied: {error}.") from error
        return talk


def _place(home: Path, environ: Mapping[str, str]) -> Path:
    moved, named = environ.get("XDG_DATA_HOME", ""), environ.get("OPENCODE_DB", "")
    folder = Path(moved) / "opencode" if Path(moved).is_absolute() else home / _FOLDER
    return folder / (named or _FILE)


@contextmanager
def _opened(file: Path) -> Iterator[sqlite3.Connection]:
    """The database to read, at one moment; raises sqlite3.Error for what is none."""
    if file.is_symlink() or not file.is_file():
        raise sqlite3.OperationalError("there is no database")
    # Without a journal nobody writes, and SQLite would leave files of its own beside the user's.
    alone = not file.with_name(f"{file.name}-wal").exists()
    address = f"file:{quote(str(file))}?{'immutable=1' if alone else 'mode=ro'}"
    with closing(sqlite3.connect(address, uri=True, timeout=_SECONDS, isolation_level=None)) as database:
        database.text_factory = lambda raw: raw.decode(errors="replace")
        database.execute("PRAGMA query_only = ON")
        database.execute("PRAGMA trusted_schema = OFF")
        database.execute("BEGIN")
        yield database


def _listed(
    database: sqlite3.Connection, name: object, folder: object, title: object, updated: object
) -> Conversation | None:
    if not isinstance(name, str) or not isinstance(folder, str) or not isinstance(updated, int):
        return None
    called = title if isinstance(title, str) and title.strip() and not title.startswith(_UNNAMED) else None
    first = _chat(database, name, _FIRST_MESSAGES).title
    if first is None:
        return None
    with suppress(OverflowError, OSError, ValueError):
        at = moment(updated / 1000)
        return Conversation(agent=_AGENT, conversation_id=name, title=called or first, folder=folder, updated_at=at)
    return None


def _chat(database: sqlite3.Connection, conversation_id: str, most: int = -1) -> Chat:
    chat = Chat()
    for name, data in database.execute(f"{_MESSAGES} LIMIT ?", (conversation_id, most)):
        message = _object(data)
        for (part,) in database.execute(_PARTS, (name,)):
            with suppress(AttributeError, KeyError, TypeError, ValueError):
                _read(chat, message, _object(part))
        if most > 0 and chat.title is not None:
            break
    return chat


def _read(chat: Chat, message: Line, part: Line) -> None:
    """Take a part of a message; one that another version wrote in another way tells nothing."""
    match message.get("role"), part:
        case "user", {"type": "text", "text": str(text)} if not part.get("synthetic"):
            chat.asked(message["time"]["created"], text)
        case "assistant", {"type": "text", "text": text}:
            chat.spoke(text)
        case "assistant", {"type": "reasoning", "text": text}:
            chat.thought(text)
        case "assistant", {"type": "tool", "callID": call, "tool": name, "state": dict(state)}:
            chat.called(call, name, state.get("input"))
            match state.get("status"):
                case "completed":
                    chat.answered(call, state.get("output"))
                case "error":
                    chat.answered(call, state.get("error"), failed=True)


def _object(data: object) -> Line:
    with suppress(ValueError, RecursionError):
        found = msgspec.json.decode(data) if isinstance(data, str | bytes) else None
        if isinstance(found, dict):
            return found
    return {}


def _size(database: sqlite3.Connection, conversation_id: str) -> int:
    total = 0
    for table in ("message", "part", "event"):
        owner = next((column for column in _columns(database, table) if column in _OWNERS), None)
        if owner is not None:
            counted = f"{_FAMILY} SELECT sum(length(data)) FROM {table} WHERE {owner} IN family"  # noqa: S608 - our names
            total += database.execute(counted, (conversation_id,)).fetchone()[0] or 0
    return total


def _copy(database: sqlite3.Connection, conversation_id: str, target: Path) -> None:
    """A database of the same version that has this conversation and nothing else: no other, and no credentials."""
    with closing(sqlite3.connect(target)) as copy, copy:
        made = database.execute("SELECT type, name, sql FROM sqlite_master WHERE sql IS NOT NULL").fetchall()
        for kind, name, sql in made:
            if kind in {"table", "index"} and not name.startswith("sqlite_") and not sql.upper().startswith("CREATE V"):
                copy.execute(sql)
        for table in [name for kind, name, _ in made if kind == "table" and not name.startswith("sqlite_")]:
            _copy_rows(database, conversation_id, copy, table)
        if "permission" in _columns(copy, "session"):
            copy.execute("UPDATE session SET permission = NULL")  # those of the session hold, not those of the user


def _copy_rows(database: sqlite3.Connection, conversation_id: str, copy: sqlite3.Connection, table: str) -> None:
    columns = _columns(database, table)
    owner = next((column for column in columns if column in _OWNERS), None)
    chosen, known = "", (conversation_id,)
    if table == "session":
        chosen = "WHERE id IN family"
    elif table == "project":
        chosen = "WHERE id IN (SELECT project_id FROM session WHERE id IN family)"
    elif owner is not None and table != "session_share":
        chosen = f"WHERE {owner} IN family"
    elif table not in _WHOLE_TABLES:
        return
    name, marks = _quoted(table), ", ".join("?" * len(columns))
    named = ", ".join(map(_quoted, columns))
    rows = database.execute(f"{_FAMILY} SELECT {named} FROM {name} {chosen}", known)  # noqa: S608 - quoted
    copy.executemany(f"INSERT INTO {name} ({named}) VALUES ({marks})", rows)  # noqa: S608 - quoted


def _columns(database: sqlite3.Connection, table: str) -> list[str]:
    return [row[1] for row in database.execute(f"PRAGMA table_info({_quoted(table)})")]


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
