"""Asks of people: permissions, questions and plans; a call asks once at most, so an ask has the id of its call."""

import asyncio
from typing import Any

import msgspec

from ostler.agent.channel import Inbox, write
from ostler.agent.entries import Call
from ostler.agent.operations import ToolFailed
from ostler.agent.tools.tool import CallContext, Input, Tool
from ostler.wire.own_agent import (
    Answered,
    ClientCalled,
    ModeChanged,
    PermissionAsk,
    PlanAsk,
    ProposalAsk,
    ProposalKind,
    QuestionAsk,
    Reply,
    Start,
)

_MOST_SHOWN = 200
_IN_PLAN_MODE = "Nothing may be changed in plan mode. Show your plan with `exit_plan_mode` when it is ready."


class Gate:
    """Says what may be done, and asks where that is for people to say."""

    def __init__(self, start: Start, inbox: Inbox) -> None:
        self._inbox = inbox
        self._asks_nobody = start.permission_mode == "bypass"
        self._accepts_edits = start.mode == "accept-edits"
        self.plans = "plan" in {start.permission_mode, start.mode}
        """Whether the agent may only look for now."""

    def leave_plan_mode(self) -> None:
        """The plan was approved."""
        self.plans = False
        write(ModeChanged(mode="default"))

    async def objection(self, tool: Tool[Any], call: Call, given: Input, context: CallContext) -> str | None:
        """Why a call may not be made; None if it may. Raises ToolFailed for one that could not work anyway."""
        if tool.changes == "nothing":
            return None
        if self.plans:
            return _IN_PLAN_MODE
        if self._asks_nobody or (self._accepts_edits and tool.changes == "files"):
            return None
        diff = await asyncio.to_thread(tool.preview, given, context)
        ask = PermissionAsk(
            id=call.id,
            tool=call.id,
            name=tool.name,
            action=_action(tool, given),
            input=tool.shown(given),
            diff=diff,
        )
        match await self._inbox.decided(ask):
            case Reply(allow=True):
                return None
            case Reply(message=message) | Answered(message=message):
                reason = f" The reason: {message}" if message else ""
                return f"This was not allowed.{reason}"


def _action(tool: Tool[Any], given: Input) -> str:
    command, path = getattr(given, "command", None), getattr(given, "path", None)
    if command is None and path is None:
        return f"{tool.name} {bytes(tool.shown(given)).decode()}"[:_MOST_SHOWN]
    return str(command) if command is not None else f"{tool.name} {path}"


class Asked:
    """The people of the session, as a tool asks them during one call."""

    def __init__(self, gate: Gate, inbox: Inbox, call: Call) -> None:
        self._gate = gate
        self._inbox = inbox
        self._call = call

    async def answer(self, question: str, options: tuple[str, ...], *, multi_select: bool) -> tuple[str, ...] | str:
        """What they chose, or why they did not."""
        ask = QuestionAsk(
            id=self._call.id, tool=self._call.id, question=question, options=options, multi_select=multi_select
        )
        match await self._inbox.decided(ask):
            case Answered(answers=answers) if answers:
                return answers
            case Answered(message=message) | Reply(message=message):
                return message or ""

    async def approve(self, plan: str) -> str | None:
        """None if they want the plan to be carried out."""
        if not self._gate.plans:
            raise ToolFailed("You are not in plan mode; just do it.")
        ask = PlanAsk(id=self._call.id, tool=self._call.id, plan=plan)
        match await self._inbox.decided(ask):
            case Reply(allow=True):
                self._gate.leave_plan_mode()
                return None
            case Reply(message=message) | Answered(message=message):
                return message or "Go on planning."

    async def propose(self, kind: ProposalKind, wanted: msgspec.Raw, reason: str) -> str | None:
        """None if they want it."""
        ask = ProposalAsk(id=self._call.id, tool=self._call.id, kind=kind, wanted=wanted, reason=reason)
        match await self._inbox.decided(ask):
            case Reply(allow=True):
                return None
            case Reply(message=message) | Answered(message=message):
                return message or "They give no reason."

    async def result(self, given: msgspec.Raw) -> str:
        """What the client's tool of this call gives. Raises ToolFailed."""
        call = ClientCalled(id=self._call.id, tool=self._call.id, name=self._call.name, input=given)
        match await self._inbox.decided(call):
            case Answered(answers=answers) if answers:
                return answers[0]
            case Answered(message=message) | Reply(message=message):
                raise ToolFailed(message or f"`{self._call.name}` failed; the client does not say why.")
