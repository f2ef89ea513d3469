"""Going on with a turn whose process died: what it came to, and saying again what people may not have heard."""

from collections.abc import Collection, Iterable, Iterator

import msgspec

from ostler.agent.channel import write
from ostler.agent.entries import (
    AnyEntry,
    Assistant,
    Block,
    Call,
    Result,
    Text,
    Thought,
    Tokens,
    calls_of,
)
from ostler.wire.own_agent import FileChange, MessageEnded, MessagePart, Planned, Start, ToolBegun, ToolEnded


class Left(msgspec.Struct, frozen=True, kw_only=True):
    """What a turn has come to."""

    asked: int = 0
    """How often the model answered."""
    used: Tokens = Tokens()
    made: tuple[tuple[str, str], ...] = ()
    """The calls that it made, by name and input."""
    answer: Assistant | None = None
    """What it said last, if that has not been dealt with."""
    calls: tuple[Call, ...] = ()
    """Those of its calls that have no result."""


def left_of(turn: list[AnyEntry]) -> Left:
    """What the entries of a turn have come to."""
    answers = [entry for entry in turn if isinstance(entry, Assistant)]
    results = {entry.call for entry in turn if isinstance(entry, Result)}
    made = tuple((call.name, call.input) for answer in answers for call in calls_of(answer.blocks))
    last = answers[-1] if answers and answers[-1].stop != "interrupted" else None
    calls = tuple(call for call in calls_of(last.blocks) if call.id not in results) if last is not None else ()
    return Left(
        asked=len(answers),
        used=_sum(entry.tokens for entry in turn if isinstance(entry, Assistant | Result)),
        made=made,
        answer=last if calls or turn[-1] is last else None,
        calls=calls,
    )


def _sum(tokens: Iterator[Tokens]) -> Tokens:
    total = Tokens()
    for each in tokens:
        total = total.plus(each)
    return total


def ids_of(turn: Iterable[AnyEntry]) -> set[str]:
    """The messages and calls of a turn, as people know them."""
    answers = [entry for entry in turn if isinstance(entry, Assistant)]
    return {answer.id for answer in answers} | {call.id for answer in answers for call in calls_of(answer.blocks)}


def say_again(turn: list[AnyEntry], start: Start, below: Collection[str] = ()) -> None:
    """Tell what may not have been heard: an entry is written before it is told.

    `below` are the ids of sub-agents that go on, and say theirs again.
    """
    calls = {call.id: call for entry in turn if isinstance(entry, Assistant) for call in calls_of(entry.blocks)}
    known = ids_of(turn).union(below)
    for begun in start.begun:
        if begun not in known:
            write(MessageEnded(id=begun, broken=True))  # it was in the middle of a message, which comes anew
    for entry in turn:
        match entry:
            case Assistant():
                _say_message(entry, start.heard)
            case Result(call=native) if native in calls and native not in start.heard:
                _say_result(calls[native], entry)
            case _:
                pass


def _say_message(entry: Assistant, heard: Collection[str]) -> None:
    content = message_parts(entry.blocks)
    if content and entry.id not in heard:
        write(MessageEnded(id=entry.id, broken=entry.stop == "interrupted", content=content))


def message_parts(blocks: tuple[Block, ...]) -> tuple[MessagePart, ...]:
    """What people see of a message."""
    return tuple(
        MessagePart(kind="text" if isinstance(block, Text) else "thinking", text=block.text)
        for block in blocks
        if isinstance(block, Text | Thought) and block.text
    )


def _say_result(call: Call, result: Result) -> None:
    write(ToolBegun(id=call.id, name=call.name, input=call.input))
    say_result(result)


def say_result(result: Result) -> None:
    """Tell people what became of a call."""
    if (change := result.change) is not None:
        write(
            FileChange(
                tool=result.call,
                path=change.path,
                action=change.action,
                operation=change.operation,
                diff=change.diff,
            )
        )
    if result.plan is not None:
        write(Planned(entries=result.plan))
    write(ToolEnded(id=result.call, output=result.output, failed=result.failed))
