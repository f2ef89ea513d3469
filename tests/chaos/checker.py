"""The invariant checker: what is stored, what clients were told and shown, and what is left of processes and mounts."""

import json
import re
import sqlite3
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import msgspec

from ostler.server.store.bursts import unpack
from tests.chaos.history import History, Reading
from tests.chaos.log_rules import Event, broken, completed

_TOKEN = re.compile(r"\btok\d+x\d+\b")
_SAID = re.compile(r"\b(tok\d+x\d+)\.(?:\s|$)")
_DECIDED = re.compile(r"(?:Allowed|Rejected): (tok\d+x\d+-permission)|(tok\d+x\d+-question) You answered:")
_RESOLVED = {"permission.resolved": "permission_id", "question.resolved": "question_id"}


@dataclass(frozen=True)
class Stored:
    """One session as the database has it."""

    id: str
    title: str
    status: str
    lines: list[bytes]
    events: list[Event]
    state: dict[str, Any]


def stored_sessions(database: Path) -> dict[str, Stored]:
    """All sessions of a database that no server has open."""
    with sqlite3.connect(f"file:{database}?mode=ro", uri=True) as connection:
        rows = connection.execute("SELECT id, title, status, state FROM sessions").fetchall()
        return {row[0]: _stored(connection, *row) for row in rows}


def _stored(connection: sqlite3.Connection, session: str, title: str, status: str, state: bytes) -> Stored:
    query = "SELECT session, packing, body, raw FROM chunks WHERE session = ? ORDER BY last"
    return unpacked(session, title, status, state, connection.execute(query, (session,)))


def unpacked(session: str, title: str, status: str, state: bytes, chunks: Iterable[Sequence[Any]]) -> Stored:
    """A session from its row and its chunks in their order: session, packing, body, raw of each."""
    lines = [line for session_id, packing, body, raw in chunks for line in unpack(session_id, packing, body, raw)[0]]
    events = [msgspec.json.decode(line) for line in lines]
    return Stored(session, title, status, lines, events, msgspec.json.decode(state))


def check(state_dir: Path, history: History) -> list[str]:
    """Every violation; the server is down and all of its agents are gone."""
    problems = check_stored(stored_sessions(state_dir / "ostler.db"), [state_dir], history)
    return problems + _positions(state_dir / "ostler.db")


def check_stored(stored: dict[str, Stored], state_dirs: Sequence[Path], history: History) -> list[str]:
    """Every violation of what is stored and shown, and what is left in the state folders of those that had agents."""
    problems = [problem for session in stored.values() for problem in broken(session.id, session.events)]
    problems += _creations(stored, history) + _prompts(stored, history) + _replies(stored, history)
    problems += [problem for reading in history.readings for problem in _reading(stored, history, reading)]
    for session in stored.values():
        problems += _decisions(session) + _starts(session, history)
    for state_dir in state_dirs:
        problems += [problem for session in stored.values() for problem in _memory(state_dir, session)]
        problems += _leavings(state_dir, stored)
    return history.violations + problems


def _positions(database: Path) -> list[str]:
    with sqlite3.connect(f"file:{database}?mode=ro", uri=True) as connection:
        rows = connection.execute("SELECT position, first, last FROM chunks ORDER BY position").fetchall()
        (value,) = connection.execute("SELECT value FROM counters WHERE name = 'position'").fetchone()
    overlaps = [b[0] for a, b in pairwise(rows) if b[0] - (b[2] - b[1]) <= a[0]]
    late = ["I1: the counter is behind"] if rows and rows[-1][0] > value else []
    return late + [f"I1: positions overlap at {place}" for place in overlaps[:1]]


def _creations(stored: dict[str, Stored], history: History) -> list[str]:
    titles = Counter(session.title for session in stored.values())
    twice = [f"I3: {title} was created {times} times" for title, times in titles.items() if times > 1]
    made = {token: session for token, session in history.created.items() if session not in history.deleted}
    lost = [f"I2: session {session} ({token}) is lost" for token, session in made.items() if session not in stored]
    returned = [f"I2: session {session} was deleted and is there" for session in history.deleted if session in stored]
    known = {session: stored[session].status for session in history.ended if session in stored}
    wrong = [
        f"I2: {one} ended as {history.ended[one]}, not {now}" for one, now in known.items() if history.ended[one] != now
    ]
    return twice + lost + returned + wrong


def _prompts(stored: dict[str, Stored], history: History) -> list[str]:
    heard = Counter(_user_tokens(stored))
    twice = [f"I3: prompt {token} is stored {times} times" for token, times in heard.items() if times > 1]
    strange = [f"I3: prompt {token} was never sent" for token in heard if token not in history.tried]
    lost = [
        f"I2: prompt {prompt.token} ({prompt.disposition} in {prompt.session}) is lost"
        for prompt in history.prompts
        if prompt.session in stored and not _has_prompt(stored[prompt.session], prompt.prompt_id, prompt.token)
    ]
    return twice + strange + lost


def _user_tokens(stored: dict[str, Stored]) -> list[str]:
    items = (item for session in stored.values() for item in completed(session.events) if item.get("role") == "user")
    texts = (part.get("text", "") for item in items for part in item["content"])
    return [found[0] for text in texts if (found := _TOKEN.search(text))]


def _has_prompt(session: Stored, prompt_id: str, token: str) -> bool:
    """Whether a prompt is in the log; the end of a session empties its queue."""
    if session.events[-1]["type"] == "session.ended":
        queued = [event for event in session.events if event["type"] == "queue.updated"]
        if any(prompt_id == entry["prompt_id"] for event in queued for entry in event["data"]["entries"]):
            return True
    own = [item for item in completed(session.events) if item["item_id"] == f"itm_{prompt_id}"]
    return any(token in part.get("text", "") for item in own for part in item["content"])


def _replies(stored: dict[str, Stored], history: History) -> list[str]:
    problems = []
    for reply in (reply for reply in history.replies if reply.session in stored):
        events = stored[reply.session].events
        own = [event["data"]["status"] for event in events if _ask_of(event) == reply.ask_id]
        if own != [reply.status]:
            problems.append(f"I2: {reply.session}: ask {reply.ask_id} was {reply.status}, the log says {own}")
    return problems


def _ask_of(event: Event) -> str | None:
    found: str | None = event["data"].get(_RESOLVED.get(event["type"], ""))
    return found


def _reading(stored: dict[str, Stored], history: History, reading: Reading) -> list[str]:
    """A reader saw the log from its beginning to its end, byte for byte."""
    who = f"{reading.session}: I4: {reading.name}"
    if reading.session in history.deleted:
        return []
    if reading.session not in stored:
        return [f"{who} read a session that is not there"]
    if reading.problem:
        return [f"{who}: {reading.problem}"]
    numbers = [number for number, _ in reading.seen]
    if numbers != list(range(1, len(numbers) + 1)):
        place = next(place for place, number in enumerate(numbers, 1) if place != number)
        return [f"{who} saw {numbers[place - 1]} after {numbers[: place - 1][-1:]}"]
    lines = stored[reading.session].lines
    if len(lines) != len(numbers):
        return [f"{who} saw {len(numbers)} events, {len(lines)} are stored"]
    changed = [number for number, line in reading.seen if lines[number - 1] != line]
    return [f"{who} saw another event {changed[0]} than the stored one"] if changed else []


def _decisions(session: Stored) -> list[str]:
    """What an agent heard, it heard once: it says every token once, and repeats every decision once."""
    spoken = [
        part.get("text", "")
        for item in completed(session.events)
        if item.get("role") == "assistant" and item["kind"] == "message"
        for part in item["content"]
    ]
    if _was_retold(session):
        return []
    said = Counter(token for text in spoken for token in _SAID.findall(text))
    heard = Counter(first or second for text in spoken for first, second in _DECIDED.findall(text))
    twice = [f"I8: {token} was said {times} times" for token, times in said.items() if times > 1]
    again = [f"I8: the decision of {token} was heard {times} times" for token, times in heard.items() if times > 1]
    return [f"{session.id}: {problem}" for problem in twice + again]


def _was_retold(session: Stored) -> bool:
    """Whether an agent was told the history: it may follow the scripts in it again."""
    return any(event["data"].get("memory") == "replayed" for event in session.events)


def _starts(session: Stored, history: History) -> list[str]:
    """An agent is only started again when it was killed, or when its start was broken off."""
    places = [place for place, event in enumerate(session.events) if _is_start(event)]
    starts = sum(not _was_broken_off(session.events[place + 1 :]) for place in places)
    most = 1 + history.losses[session.id]
    return [f"{session.id}: an agent that was lost {most - 1} times was started {starts} times"] * (starts > most)


def _is_start(event: Event) -> bool:
    return event["type"] == "session.info" and "start" in event["data"]


def _was_broken_off(later: Iterable[Event]) -> bool:
    """Whether somebody interrupted the turn that an agent was started for before the agent heard of it."""
    for event in later:
        if event["type"] == "turn.ended":
            return bool(event["data"]["stop_reason"] == "interrupted")
        if _is_start(event) or (event["type"] == "item.started" and event["data"]["item"].get("role") != "user"):
            return False
    return False


def _memory(state_dir: Path, session: Stored) -> list[str]:
    """The mock agent writes down every prompt it hears."""
    if _was_retold(session):
        return []
    files = (state_dir / "sessions" / session.id / "home" / ".mock-agent").glob("*.json")
    notes = (file.read_bytes() for file in files)  # a power cut may empty the agent's own notes
    prompts = [text for note in notes if note for text in json.loads(note)["turns"]]
    heard = Counter(found[0] for text in prompts if (found := _TOKEN.search(text)))
    return [f"{session.id}: I3: the agent heard {token} {times} times" for token, times in heard.items() if times > 1]


def _leavings(state_dir: Path, stored: dict[str, Stored]) -> list[str]:
    """Nothing is left of agents, and nothing at all of sessions that are not there."""
    keepers = [f"I7: {path.name} is left of a keeper" for path in (state_dir / "keepers").glob("*")]
    strays = [path.name for path in (state_dir / "sessions").glob("*") if path.name not in stored]
    mounts = [line.split()[1] for line in Path("/proc/self/mounts").read_text().splitlines()]
    mounted = [f"I7: {place} is still mounted" for place in mounts if place.startswith(str(state_dir))]
    return keepers + mounted + [f"I7: the folder of {name} is left" for name in strays]
