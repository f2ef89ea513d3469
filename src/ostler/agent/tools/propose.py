"""Proposing what begins by itself, or what may be done without asking; nothing of it holds before a person says yes."""

from typing import Annotated, Any, Literal

import msgspec

from ostler.agent.operations import ToolFailed
from ostler.agent.tools.tool import CallContext, Input, Output, Tool
from ostler.wire.own_agent import ProposalKind

_FIELDS: dict[ProposalKind, tuple[str, ...]] = {
    "schedule": ("name", "template", "cron", "at", "time_zone", "inputs", "prompt"),
    "trigger": ("name", "template", "scheme", "event_filter", "inputs", "prompt"),
    "policy": ("rules",),
}
_EVERY = ("kind", "reason")


class ProposeInput(Input, frozen=True, kw_only=True, omit_defaults=True):
    """What `propose` takes."""

    kind: Annotated[
        ProposalKind,
        msgspec.Meta(description="Tasks by the clock, tasks for signed events from outside, or rules for this session"),
    ]
    reason: Annotated[str, msgspec.Meta(min_length=1, description="What the person is to read before deciding")]
    name: Annotated[str | None, msgspec.Meta(description="Of the schedule or trigger, in lower-case letters")] = None
    template: Annotated[str | None, msgspec.Meta(description="The stored template that it begins")] = None
    inputs: Annotated[
        dict[str, Any], msgspec.Meta(description="Values for the template's variables; of a trigger texts in Liquid")
    ] = msgspec.field(default_factory=dict)
    prompt: Annotated[str | None, msgspec.Meta(description="Instead of the template's own")] = None
    cron: Annotated[str | None, msgspec.Meta(description="Of a schedule: five fields, or a word like @daily")] = None
    at: Annotated[str | None, msgspec.Meta(description="Of a schedule: one time in RFC 3339, instead of cron")] = None
    time_zone: Annotated[str | None, msgspec.Meta(description="Of a schedule, such as Europe/Berlin")] = None
    scheme: Annotated[
        Literal["github", "gitea", "gitlab", "slack", "stripe", "standard", "token"] | None,
        msgspec.Meta(description="Of a trigger: how its senders sign"),
    ] = None
    event_filter: Annotated[
        dict[str, list[Any]],
        msgspec.Meta(description='Of a trigger: paths and the values they may have, as {"event.action": ["opened"]}'),
    ] = msgspec.field(default_factory=dict)
    rules: Annotated[
        dict[str, Literal["allow", "ask", "deny"]],
        msgspec.Meta(description="Of a policy: a tool's name, with * for anything, and what becomes of its asks"),
    ] = msgspec.field(default_factory=dict)


async def _propose(given: ProposeInput, context: CallContext) -> Output:
    objection = await context.people.propose(given.kind, msgspec.Raw(msgspec.json.encode(_wanted(given))), given.reason)
    if objection is None:
        return Output(text=f"A person said yes: the {given.kind} holds from now on.")
    return Output(text=f"The {given.kind} is not made. {objection}", failed=True)


def _wanted(given: ProposeInput) -> dict[str, Any]:
    """As the API takes it; what belongs to another kind is refused rather than passed over."""
    named = {name: value for name in given.__struct_fields__ if (value := getattr(given, name)) not in (None, {})}
    if strange := sorted(set(named) - {*_EVERY, *_FIELDS[given.kind]}):
        raise ToolFailed(f"{', '.join(strange)}: a {given.kind} takes only {', '.join(_FIELDS[given.kind])}.")
    wanted = {name: named[name] for name in _FIELDS[given.kind] if name in named}
    match given.kind:
        case "schedule":
            return {"timeZone" if name == "time_zone" else name: value for name, value in wanted.items()}
        case "trigger":
            mapping = {name: wanted[name] for name in ("prompt", "inputs") if name in wanted}
            about: dict[str, Any] = {name: wanted[name] for name in ("name", "template") if name in wanted}
            signature = {"scheme": given.scheme} if given.scheme is not None else {}
            return {**about, "signature": signature, "filter": given.event_filter, "mapping": mapping}
        case "policy":
            return {"rules": [{"pattern": name, "permission": word} for name, word in given.rules.items()]}


PROPOSE = Tool(
    name="propose",
    description=(
        "Propose a schedule or a trigger, which begin tasks of a stored template by themselves, or a policy: rules for "
        "what you may do in this session without asking. A person decides, and nothing holds before. Only when the "
        "task is about that, or when you would ask for the same again and again."
    ),
    input=ProposeInput,
    run=_propose,
)
