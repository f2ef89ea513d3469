"""Makes room when a conversation fills the window of its model: a summary takes the place of what is long ago."""

import time
from collections.abc import Sequence
from pathlib import Path

import msgspec

from ostler.agent.entries import AnyEntry, Assistant, Compaction, Exchange, Result, Step, Text, User
from ostler.agent.models.asking import Answer

_REMAINING_TOKENS = 20_000
_LEAST_RESERVE = 16_384
_SHORT = 2_000
_BYTES_PER_TOKEN = 4
_ORDER = Path(__file__).with_name("prompts") / "compaction.md"


def is_full(entries: Sequence[AnyEntry], window: int | None, output: int | None) -> bool:
    """Whether the next call may not fit, by what the provider counted last and what came since."""
    if window is None:
        return False
    reserve = min(max(output or 0, _LEAST_RESERVE), window // 2)
    return _used(entries) > window - reserve


def _used(entries: Sequence[AnyEntry]) -> int:
    """Tokens of the next request, about."""
    since = 0
    for entry in reversed(entries):
        if isinstance(entry, Compaction):
            return since + len(entry.summary) // _BYTES_PER_TOKEN
        if isinstance(entry, Assistant) and entry.tokens.input:
            return since + entry.tokens.input + entry.tokens.output
        since += _size(entry)
    return since


def _size(entry: AnyEntry) -> int:
    match entry:
        case User():
            return len(entry.words.encode()) // _BYTES_PER_TOKEN
        case Result(output=output):
            return len(output.encode()) // _BYTES_PER_TOKEN
        case Assistant(blocks=blocks):
            return len(msgspec.json.encode(blocks)) // _BYTES_PER_TOKEN
        case _:
            return 0


def first_remaining(entries: Sequence[AnyEntry], window: int | None) -> str:
    """The entry from which on everything stays as it is; a call is never parted from its result."""
    room = min(_REMAINING_TOKENS, (window or 4 * _REMAINING_TOKENS) // 4)
    first, used = "", 0
    for entry in reversed(entries):
        used += _size(entry)
        if isinstance(entry, Compaction) or used > room:
            break
        if isinstance(entry, User | Assistant):
            first = entry.id
    return first


def order(steps: Sequence[Step], *, shortened: bool) -> list[Step]:
    """What the model is asked for a summary: everything as before, so that it is cached, and one message more.

    `shortened` is for a conversation that is too long even for that.
    """
    asked = User(id="compaction", parent=None, at=time.time(), text=_ORDER.read_text().strip())
    return [*(map(_shortened, steps) if shortened else steps), asked]


def _shortened(step: Step) -> Step:
    if isinstance(step, User):
        return msgspec.structs.replace(step, text=_short(step.text), pictures=())
    results = (msgspec.structs.replace(each, output=_short(each.output), pictures=()) for each in step.results)
    return Exchange(step.assistant, tuple(results))


def _short(text: str) -> str:
    if len(text) <= _SHORT:
        return text
    return f"{text[: _SHORT // 2]}\n[{len(text) - _SHORT} characters left out]\n{text[-_SHORT // 2 :]}"


def summary_of(answer: Answer) -> str:
    """The summary that the model wrote; empty if it wrote none."""
    return "\n\n".join(block.text.strip() for block in answer.blocks if isinstance(block, Text)).strip()
