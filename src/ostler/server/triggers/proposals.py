"""What agents propose to begin by itself: checked at once, and made when a person says yes."""

import re
from typing import Any

import msgspec

from ostler.base.errors import InvalidRequest
from ostler.base.errors.schedules import ScheduleExists
from ostler.base.errors.triggers import TriggerExists
from ostler.server.schedules.service import Schedules
from ostler.server.schedules.times import checked as checked_times
from ostler.server.store.templates import Templates
from ostler.server.templates.service import found
from ostler.server.triggers.service import Triggers
from ostler.wire.prompts import NAME
from ostler.wire.schedules import NewSchedule
from ostler.wire.triggers import NewTrigger

Json = dict[str, Any]
_NAME = re.compile(NAME)


class Proposals:
    """Schedules and triggers that are not there yet."""

    def __init__(self, schedules: Schedules, triggers: Triggers, templates: Templates) -> None:
        self.schedules = schedules
        self.triggers = triggers
        self._templates = templates

    async def checked(self, project: str, wanted: NewSchedule | NewTrigger) -> Json:
        """As an ask carries it; raises if it could not be made now."""
        if not _NAME.fullmatch(wanted.name):
            reason = "must be up to 64 lower-case letters, digits and ._-"
            raise InvalidRequest(reason=f"name {reason}.", errors={"name": [reason]})
        if isinstance(wanted, NewTrigger):
            await self.triggers.check(project, wanted)
            if wanted.name in {each.name for each in await self.triggers.all(project)}:
                raise TriggerExists(name=wanted.name)
            return {"kind": "trigger", "wanted": msgspec.to_builtins(wanted)}
        checked_times(wanted)
        await found(self._templates, project, wanted.template)
        if wanted.name in {each.name for each in await self.schedules.all(project)}:
            raise ScheduleExists(name=wanted.name)
        return {"kind": "schedule", "wanted": msgspec.to_builtins(wanted)}

    async def make(self, project: str, proposal: Json) -> None:
        """Make it; once more is the same, if a server was killed before the answer was written."""
        if proposal["kind"] == "schedule":
            await self._schedule(project, msgspec.convert(proposal["wanted"], NewSchedule))
        else:
            await self._trigger(project, msgspec.convert(proposal["wanted"], NewTrigger))

    async def _schedule(self, project: str, wanted: NewSchedule) -> None:
        await found(self._templates, project, wanted.template)
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


def _is_same(made: msgspec.Struct, wanted: msgspec.Struct) -> bool:
    fields = [field for field in wanted.__struct_fields__ if hasattr(made, field)]
    return all(getattr(made, field) == getattr(wanted, field) for field in fields)
