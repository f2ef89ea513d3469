"""Commands of the model."""

import asyncio
import codecs
from collections import deque
from typing import Annotated, Literal

import msgspec

from ostler.agent.claims import Claim, Left
from ostler.agent.entries import How
from ostler.agent.operations import QUIET
from ostler.agent.tools.tool import CallContext, Input, Output, Tool

_HEAD, _TAIL = 10_000, 40_000
_MOST_SHOWN = 4 * 2**20
"""Characters of one command that people see."""
_DRAIN_SECONDS = 2.0
_DEFAULT_SECONDS, _MOST_SECONDS = 120, 600
_PICKED_UP = "it came to its end while the agent was started anew; the end of its output may be missing"
_CUT_OFF = "cut off: the agent was started anew while this ran. What it had done by then is done; it was not run again"


class BashInput(Input, frozen=True, kw_only=True):
    """What `bash` takes."""

    command: Annotated[str, msgspec.Meta(min_length=1, description="What bash is to run, in the workspace's root")]
    timeout: Annotated[
        int, msgspec.Meta(ge=1, le=_MOST_SECONDS, description="Seconds until it is ended; 120 by default")
    ] = _DEFAULT_SECONDS


class Printed:
    """The beginning and the end of what a command prints."""

    def __init__(self) -> None:
        self._head = ""
        self._tail: deque[str] = deque()
        self._tail_size = 0
        self._lost = 0

    def add(self, text: str) -> None:
        room = _HEAD - len(self._head)
        self._head, rest = self._head + text[:room], text[room:]
        if rest:
            self._tail.append(rest)
            self._tail_size += len(rest)
        while self._tail and self._tail_size - len(self._tail[0]) >= _TAIL:
            lost = len(self._tail.popleft())
            self._tail_size -= lost
            self._lost += lost

    def whole(self) -> str:
        tail = "".join(self._tail)
        lost = self._lost + max(0, len(tail) - _TAIL)
        if not lost:
            return self._head + tail
        mark = f"\n[{lost} characters left out; write the output to a file and look at parts of it to see them]\n"
        return f"{self._head}{mark}{tail[-_TAIL:]}"


class Heard:
    """What a command prints, on its way to the model and to people."""

    def __init__(self, context: CallContext, claim: Claim | None = None) -> None:
        """`claim` keeps it on disk, within bounds."""
        self._stored = self._shown = 0
        self.printed = Printed()
        self._show = context.show
        self._claim = claim
        made = codecs.getincrementaldecoder("utf-8")
        self._decoders = {1: made(errors="replace"), 2: made(errors="replace")}

    def __call__(self, fd: int, data: bytes) -> None:
        if self._claim is not None and self._stored < _HEAD + _TAIL:
            self._stored += len(data)
            self._claim.hear(data)
        if text := self._decoders[fd].decode(data):
            self.printed.add(text)
            self._tell("stderr" if fd == 2 else "stdout", text)

    def _tell(self, stream: Literal["stdout", "stderr"], text: str) -> None:
        """Show people what is new, but not without end."""
        room = _MOST_SHOWN - self._shown
        if room > 0:
            self._shown += len(text)
            cut = "" if len(text) < room else "\n[what it prints from here on is not shown]\n"
            self._show(stream, f"{text[:room]}{cut}")


async def _bash(given: BashInput, context: CallContext) -> Output:
    if (left := context.claim.left()) is not None:
        return _found(left)
    heard = Heard(context, context.claim)
    running_it = context.workspace.run(
        given.command,
        heard,
        environ={**context.environ, **QUIET},
        seconds=given.timeout,
        wrap=context.claim.wrapped,
        alone=True,
    )
    try:
        async with asyncio.timeout(given.timeout), running_it as running:
            code = await running.ended()
            await running.drained(_DRAIN_SECONDS)  # what it left running may hold its pipes
    except TimeoutError:
        text = f"{heard.printed.whole()}\n[ended after {given.timeout} seconds, with all that it had started]"
        return Output(text=text.lstrip("\n"), failed=True)
    return _answered(heard.printed.whole(), code)


def _answered(printed: str, code: int, how: How = "ran") -> Output:
    ending = "" if code == 0 else f"\n[{_ending(code)}]"
    return Output(text=f"{printed.rstrip()}{ending}".lstrip("\n") or "(no output)", failed=code != 0, how=how)


def _found(left: Left) -> Output:
    """What an earlier process began is not begun again."""
    printed = left.printed.decode(errors="replace")
    if left.code is not None:
        return _answered(f"{printed.rstrip()}\n[{_PICKED_UP}]", left.code, "picked_up")
    return Output(text=f"{printed.rstrip()}\n[{_CUT_OFF}]".lstrip("\n"), failed=True, how="cut_off")


def _ending(code: int) -> str:
    return f"exit code {code}" if code > 0 else f"ended by signal {-code}"


BASH = Tool(
    name="bash",
    description=(
        "Run a command with bash in the root of the workspace. Each call is a new shell: folders and variables that "
        "one sets are gone in the next. There is no terminal and no input. Output and errors are given together, of "
        "long ones the beginning and the end, and the exit code if it is not 0. The command is ended after `timeout` "
        "seconds (120 by default, at most 600), with everything that it started. For what should go on, such as a "
        "server, put it into the background and send its output to a file. Not for reading, searching or changing "
        "files where `read`, `grep`, `find`, `edit` or `write` can do it."
    ),
    input=BashInput,
    run=_bash,
    changes="anything",
)
