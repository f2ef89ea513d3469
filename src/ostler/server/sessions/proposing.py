"""What an agent proposes that goes beyond its session: it is checked before people see it, and no rule decides it."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

import msgspec
from msgspec.structs import replace

from ostler.base.errors import OstlerError
from ostler.wire.events import PermissionData, PermissionRule, PermissionRules
from ostler.wire.running import PROPOSES, Draft

PROPOSAL = "proposal"
"""In the metadata of an ask: what is made if a person says yes. Only the server writes it."""
POLICY = "policy"
"""The kind of a proposal that changes the rules of its session."""


class Policy(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Rules that are to hold in a session, beside those that it has."""

    rules: PermissionRules


class Proposed(msgspec.Struct, frozen=True, kw_only=True):
    """A proposal as people are asked about it."""

    action: str
    proposal: dict[str, Any]


Propose = Callable[[str, dict[str, Any]], Awaitable[Proposed]]
"""Reads what an agent proposes in a project; raises if it could not be made."""


async def proposals_in(asked: Sequence[Draft], project: str, read: Propose) -> dict[str, Proposed | str]:
    """By the id of its ask what an agent proposes, or why that cannot be."""
    found: dict[str, Proposed | str] = {}
    for draft in asked:
        if not isinstance(draft.data, PermissionData):
            continue
        if isinstance(wanted := (draft.data.metadata or {}).get(PROPOSES), dict):
            try:
                found[draft.data.permission_id] = await read(project, wanted)
            except OstlerError as error:
                found[draft.data.permission_id] = str(error)
    return found


def as_proposed(draft: Draft, found: Mapping[str, Proposed | str]) -> Draft:
    """The draft with what was found of its proposal, and without what an agent might have put there itself."""
    data = draft.data
    if not isinstance(data, PermissionData) or not {PROPOSAL, PROPOSES} & set(data.metadata or {}):
        return draft
    metadata = {name: value for name, value in (data.metadata or {}).items() if name not in {PROPOSAL, PROPOSES}}
    proposed = found.get(data.permission_id)
    if isinstance(proposed, Proposed):
        draft.data = replace(data, action=proposed.action, metadata={**metadata, PROPOSAL: proposed.proposal})
    else:
        draft.data = replace(data, metadata=metadata)
    return draft


def with_rules(now: Sequence[PermissionRule], proposal: Mapping[str, Any]) -> tuple[PermissionRule, ...]:
    """The rules of a session with those of a proposal, which take the place of what says something of the same tool."""
    wanted = msgspec.convert(proposal["wanted"], Policy).rules
    named = {rule.pattern for rule in wanted}
    return (*(rule for rule in now if rule.pattern not in named), *wanted)
