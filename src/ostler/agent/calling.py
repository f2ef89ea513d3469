"""Runs the calls of one answer: in their order, those that only look side by side, and none after a message came."""

import asyncio
import sys
import traceback
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Literal

from ostler.agent.asking import Asked, Gate
from ostler.agent.channel import Inbox, write
from ostler.agent.continuing import say_result
from ostler.agent.entries import Call, How, Result
from ostler.agent.journal import Journal
from ostler.agent.operations import Operations, ToolFailed, Unreachable
from ostler.agent.tools.table import runs_beside_others
from ostler.agent.tools.tool import CallContext, Input, Output, Tool
from ostler.wire.own_agent import ToolBegun, ToolPrinted

_MOST_AT_ONCE = 8
_PAUSE_SECONDS = 0.5
SKIPPED = "Skipped: a message from the user came first. It follows these results."
INTERRUPTED = "Interrupted by the user before it was done."


class Calls:
    """Runs calls, and keeps what became of them."""

    def __init__(
        self,
        tools: Mapping[str, Tool[Any]],
        gate: Gate,
        inbox: Inbox,
        journal: Journal,
        workspace: Operations,
        environ: Mapping[str, str],
        delegate: Callable[[Call, str, bool], Awaitable[Output]],
    ) -> None:
        """`delegate` has a sub-agent do something."""
        self._delegate = delegate
        self._tools = tools
        self._gate = gate
        self._inbox = inbox
        self._journal = journal
        self._workspace = workspace
        self._environ = environ
        self.granted: set[str] = set()
        """Files that people attached."""
        self.bad_inputs = 0
        """How many calls in a row could not even be read."""

    async def run(self, calls: Sequence[Call], *, was_cut: bool) -> None:
        """Run all, unless people say something meanwhile; `was_cut` says that the last may not be whole."""
        for group in self._groups(calls):
            if self._inbox.steered and not any(map(self._has_begun, group)):
                self.refuse(group, SKIPPED, "skipped")
            else:
                await asyncio.gather(*(self._one(call, was_cut=was_cut) for call in group))

    def _has_begun(self, call: Call) -> bool:
        return self._journal.claim(call.id).is_begun or self._journal.has_below(call.id)

    def refuse(self, calls: Sequence[Call], why: str, how: How) -> None:
        """Run none of these."""
        for call in calls:
            write(_begun(call))
            self._answer(call, Output(text=why, failed=True), how)

    def _groups(self, calls: Sequence[Call]) -> Iterator[list[Call]]:
        group: list[Call] = []
        for call in calls:
            tool = self._tools.get(call.name)
            looks = tool is not None and runs_beside_others(tool, call.input)
            if group and (not looks or len(group) == _MOST_AT_ONCE):
                yield group
                group = []
            group.append(call)
            if not looks:
                yield group
                group = []
        if group:
            yield group

    async def _one(self, call: Call, *, was_cut: bool) -> None:
        write(_begun(call))
        try:
            output, how = await self._run(call, was_cut=was_cut)
        except asyncio.CancelledError:
            if not self._inbox.is_closed:  # else it is the next process that says what became of it
                self._answer(call, Output(text=INTERRUPTED, failed=True), "interrupted")
            raise
        except ToolFailed as failed:
            output, how = Output(text=str(failed), failed=True), "ran"
        except Exception as error:  # noqa: BLE001  the edge of a call: the model hears of it, and the turn goes on
            traceback.print_exception(error, file=sys.stderr)
            output, how = Output(text=f"`{call.name}` failed: {error}", failed=True), "ran"
        self._answer(call, output, how)

    async def _run(self, call: Call, *, was_cut: bool) -> tuple[Output, How]:
        tool = self._tools.get(call.name)
        if tool is None:
            self.bad_inputs += 1
            raise ToolFailed(f"There is no tool `{call.name}`. You have: {', '.join(self._tools)}.")
        try:
            given = tool.read(call.input)
        except ToolFailed as failed:
            self.bad_inputs += 1
            why = " The limit of your output cut it off; do it in smaller pieces." if was_cut else ""
            raise ToolFailed(f"{failed}{why}") from failed
        self.bad_inputs = 0
        context = self._context(call)
        is_allowed = context.claim.is_begun  # by whoever was asked by an earlier process
        objection = None if is_allowed else await self._gate.objection(tool, call, given, context)
        if objection is not None:
            return Output(text=objection, failed=True), "denied"
        output = await _done(tool, given, context)
        return output, output.how

    def _context(self, call: Call) -> CallContext:
        return CallContext(
            workspace=self._workspace,
            environ=self._environ,
            granted=self.granted,
            keep=self._journal.put,
            show=partial(_show, call.id),
            people=Asked(self._gate, self._inbox, call),
            claim=self._journal.claim(call.id),
            delegate=partial(self._delegate, call),
        )

    def _answer(self, call: Call, output: Output, how: How) -> None:
        result = self._journal.add(
            Result,
            call=call.id,
            output=output.text,
            how=how,
            failed=output.failed,
            pictures=output.pictures,
            change=output.change,
            plan=output.plan,
            tokens=output.tokens,
        )
        say_result(result)
        self._journal.claim(call.id).forget()


async def _done(tool: Tool[Any], given: Input, context: CallContext) -> Output:
    """Make a call within its time, and again if it came nowhere. Raises ToolFailed."""
    tries = tool.retries + 1
    for number in range(1, tries + 1):
        try:
            async with asyncio.timeout(tool.seconds):
                return await tool.run(given, context)
        except TimeoutError as error:
            raise ToolFailed(f"`{tool.name}` took longer than {tool.seconds:.0f} seconds and was given up.") from error
        except Unreachable as failed:
            if number == tries:
                raise Unreachable(f"{failed} (tried {number} times)" if number > 1 else str(failed)) from failed
            await asyncio.sleep(_PAUSE_SECONDS * number)
    raise AssertionError(tries)


def _begun(call: Call) -> ToolBegun:
    return ToolBegun(id=call.id, name=call.name, input=call.input)


def _show(call_id: str, stream: Literal["stdout", "stderr"], text: str) -> None:
    write(ToolPrinted(id=call_id, stream=stream, text=text))
