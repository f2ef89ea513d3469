"""What agents propose to begin by itself, or to do without asking: checked at once, and made when a person says yes."""

from typing import Any

import msgspec

from ostler.base.errors import InvalidRequest
from ostler.base.errors.schedules import ScheduleExists
from ostler.base.errors.triggers import TriggerExists
from ostler.server.schedules.service import Schedules
from ostler.server.sessions.proposing import POLICY, Policy, Proposed
from ostler.server.triggers.service import Triggers
from ostler.wire.schedules import NewSchedule
from ostler.wire.triggers import NewTrigger

Json = dict[str, Any]
Proposable = NewSchedule | NewTrigger | Policy
_KINDS: dict[str, type[Proposable]] = {"schedule": NewSchedule, "trigger": NewTrigger, POLICY: Policy}


class Proposals:
    """Schedules, triggers and policies of sessions that are not there yet."""

    def __init__(self, schedules: Schedules, triggers: Triggers) -> None:
        self.schedules = schedules
        self.triggers = triggers

    async def read(self, project: str, proposal: Json) -> Proposed:
        """The same of what an agent sends itself: its `kind`, what is `wanted`, and the `reason`."""
        kind, reason = str(proposal.get("kind", "")), str(proposal.get("reason", ""))
        if kind not in _KINDS:
            raise _invalid("kind", f"must be one of {', '.join(_KINDS)}")
        try:
            wanted = msgspec.convert(proposal.get("wanted"), _KINDS[kind])
        except msgspec.ValidationError as error:
            raise _invalid(kind, f"is none: {error}") from error
        return await self.checked(project, wanted, reason)

    async def checked(self, project: str, wanted: Proposable, reason: str) -> Proposed:
        """As an ask carries it; raises if it could not be made now."""
        if not reason.strip():
            raise _invalid("reason", "must not be empty: a person reads it before deciding")
        if isinstance(wanted, Policy):
            if not wanted.rules:
                raise _invalid("rules", "must name at least one tool")
            rules = ", ".join(f"{rule.permission} {rule.pattern}" for rule in wanted.rules)
            return _proposed(POLICY, f"hold these rules in this session from now on ({rules})", wanted, reason)
        kind = await (self._trigger_fits if isinstance(wanted, NewTrigger) else self._schedule_fits)(project, wanted)
        action = f"make the {kind} '{wanted.name}', which begins template '{wanted.template}'"
        return _proposed(kind, action, wanted, reason)

    async def _trigger_fits(self, project: str, wanted: Any) -> str:
        await self.triggers.check(project, wanted)
        if wanted.name in {each.name for each in await self.triggers.all(project)}:
            raise TriggerExists(name=wanted.name)
        return "trigger"

    async def _schedule_fits(self, project: str, wanted: Any) -> str:
        await self.schedules.check(project, wanted)
        if wanted.name in {each.name for each in await self.schedules.all(project)}:
            raise ScheduleExists(name=wanted.name)
        return "schedule"

    async def make(self, project: str, proposal: Json) -> None:
        """Make it; once more is the same, if a server was killed before the answer was written."""
        if proposal["kind"] == "schedule":
            await self._schedule(project, msgspec.convert(proposal["wanted"], NewSchedule))
        else:
            await self._trigger(project, msgspec.convert(proposal["wanted"], NewTrigger))

    async def _schedule(self, project: str, wanted: NewSchedule) -> None:
        try:
            await self.schedules.add(project, wanted)
        except ScheduleExists:
            if not _is_same(await self.schedules.one(project, wanted.name), wanted):
                raise

    async def _trigger(self, project: str, wanted: NewTrigger) -> None:
        try:
            await self.triggers.add(project, wanted)
        except TriggerExists:
            if not _is_same(await self.triggers.one(project, wanted.name), wanted):
                raise


def _proposed(kind: str, action: str, wanted: Proposable, reason: str) -> Proposed:
    return Proposed(action=f"{action}: {reason}", proposal={"kind": kind, "wanted": msgspec.to_builtins(wanted)})


def _invalid(field: str, reason: str) -> InvalidRequest:
    return InvalidRequest(reason=f"{field} {reason}.", errors={field: [reason]})


def _is_same(made: msgspec.Struct, wanted: msgspec.Struct) -> bool:
    fields = [field for field in wanted.__struct_fields__ if hasattr(made, field)]
    return all(getattr(made, field) == getattr(wanted, field) for field in fields)
