"""Sessions and tasks that begin with a template: what it says stands where the request is silent."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any, TypeVar

import msgspec
from msgspec.structs import replace

from ostler.base.errors import InvalidRequest, Unprocessable
from ostler.base.redaction import holds_secret
from ostler.server.store.templates import Templates
from ostler.server.templates.reading import AgentLayer, Definition, wrong
from ostler.server.templates.service import found
from ostler.wire.providers import CodeTool
from ostler.wire.sessions import CreateSession
from ostler.wire.tasks import CreateTask, TaskAgent, TaskSettings
from ostler.wire.templates import placed, value_text
from ostler.wire.workspaces import Repo

LABEL = "template"
"""The label of a session that says which revision it began with."""
_LONGEST_INPUT = 20_000
_SETTINGS = ("model", "variant", "mode", "permission_mode", "permission_rules", "turn_timeout_seconds")
T = TypeVar("T", bound=msgspec.Struct)


class Filled(msgspec.Struct, frozen=True, kw_only=True):
    """A template with the values of its variables."""

    reference: str
    definition: Definition
    agent: AgentLayer
    instructions: str
    prompt: str


async def filled(store: Templates, project: str, reference: str, inputs: Mapping[str, Any], agent: str) -> Filled:
    """The revision that a reference names, with these inputs; `agent` is the one that the request names, or none."""
    row, definition = await found(store, project, reference)
    values = _values(definition, inputs)
    layer = definition.agent.for_agent(agent or definition.agent.agent or "")
    return Filled(
        reference=f"{row.name}@{row.revision}",
        definition=definition,
        agent=layer,
        instructions=placed(_instructions(definition), values),
        prompt=placed(definition.manifest.prompt or "", values),
    )


async def session_of(store: Templates, project: str, wanted: CreateSession, given: Collection[str]) -> CreateSession:
    """The session that a request asks for, with what its template says; `given` are the fields that it names itself."""
    if wanted.template is None:
        if wanted.inputs:
            raise _invalid("inputs", "fill a template; name it in template")
        if not wanted.agent:
            raise _invalid("agent", "is required, unless template names one")
        return wanted
    template = await filled(store, project, wanted.template, wanted.inputs, wanted.agent)
    return with_template(wanted, template, given)


def with_template(wanted: CreateSession, template: Filled, given: Collection[str]) -> CreateSession:
    """A session with what its template says, where the request is silent."""
    layer, definition = template.agent, template.definition
    infrastructure = definition.infrastructure
    says: dict[str, Any] = {name: getattr(layer, name) for name in (*_SETTINGS, "temperature", "tools", "limits")}
    says |= {"agent": definition.agent.agent, "instructions": template.instructions or None}
    if wanted.cwd is None:
        says |= {name: getattr(infrastructure, name) for name in ("repo", "runtime", "setup")}
        if infrastructure.repo is None and (says["runtime"] is not None or says["setup"] is not None):
            says["repo"] = Repo(mode="none")
    made = _where_silent(wanted, says, given)
    if not made.agent:
        raise _invalid("agent", "is required: the template names none")
    return replace(
        made,
        template=None,
        inputs={},
        mcp_servers={**definition.mcp_servers, **wanted.mcp_servers},
        code_tools=_code_tools(definition, wanted.code_tools),
        labels={**wanted.labels, LABEL: template.reference},
    )


async def task_of(store: Templates, project: str, wanted: CreateTask, given: Collection[str]) -> CreateTask:
    """The task that a request asks for, with what its template says; `given` are the settings that it names itself."""
    if wanted.template is None:
        if wanted.inputs:
            raise _invalid("inputs", "fill a template; name it in template")
        if wanted.agent is None:
            raise _invalid("agent", "is required, unless template names one")
        if not wanted.prompt:
            raise _invalid("prompt", "is required, unless a template has one")
        return wanted
    agent = wanted.agent or TaskAgent(type="")
    template = await filled(store, project, wanted.template, wanted.inputs, agent.type)
    definition, layer = template.definition, template.agent
    says = {name: getattr(layer, name) for name in _SETTINGS} | {"instructions": template.instructions or None}
    if layer.limits is not None:
        says["max_tokens"] = layer.limits.max_tokens
    settings = _where_silent(agent.settings, says, given)
    settings = replace(
        settings,
        mcp_servers={**definition.mcp_servers, **settings.mcp_servers},
        code_tools=_code_tools(definition, settings.code_tools),
    )
    name = agent.type or definition.agent.agent
    if not name:
        raise _invalid("agent", "is required: the template names none")
    if not (prompt := wanted.prompt or template.prompt):
        raise _invalid("prompt", "is required: the template has none")
    infrastructure = definition.infrastructure
    layers = {name: getattr(infrastructure, name) for name in ("repo", "runtime", "delivery")}
    made = _where_silent(wanted, layers, ())
    workspace = made.workspace
    if workspace.setup is None and infrastructure.setup is not None:
        workspace = replace(workspace, setup=infrastructure.setup)
    return replace(
        made,
        template=None,
        inputs={},
        prompt=prompt,
        agent=replace(agent, type=name, settings=settings),
        workspace=workspace,
        labels={**wanted.labels, LABEL: template.reference},
    )


def _code_tools(definition: Definition, wanted: Sequence[CodeTool]) -> tuple[CodeTool, ...]:
    """Those of both; one that a request brings goes before its namesake."""
    own = {tool.name for tool in wanted}
    return (*(tool for tool in definition.code_tools if tool.name not in own), *wanted)


async def startable(store: Templates, project: str, reference: str) -> Definition:
    """A template that can begin without a person; raises for one that leaves the agent to be chosen."""
    _, definition = await found(store, project, reference)
    if not definition.agent.agent:
        reason = (
            f"'{reference[:80]}' names no agent, and nobody is there to choose one: name it in agent.toml and push it"
        )
        raise _invalid("template", reason)
    return definition


class Chosen(msgspec.Struct, frozen=True, kw_only=True):
    """The session of a chat that names a template, and the inputs that are told to its agent."""

    session: CreateSession
    inputs: dict[str, Any]


async def chat_of(
    store: Templates, project: str, wanted: CreateSession, inputs: Mapping[str, Any], given: Collection[str]
) -> Chosen:
    """The session that a chat begins with a template: inputs that are no variables of it are told to the agent."""
    _, definition = await found(store, project, wanted.template or "")
    known = {name: value for name, value in inputs.items() if name in definition.variables}
    session = await session_of(store, project, replace(wanted, inputs=known), given)
    return Chosen(session=session, inputs={name: value for name, value in inputs.items() if name not in known})


def _where_silent(wanted: T, says: Mapping[str, Any], given: Collection[str]) -> T:
    """What is said, for the fields that were not sent and are as they would be without a word."""
    defaults = {field.name: field.default for field in msgspec.structs.fields(type(wanted))}
    factories = {
        field.name: field.default_factory()
        for field in msgspec.structs.fields(type(wanted))
        if field.default_factory is not msgspec.NODEFAULT
    }
    defaults |= factories
    taken = {
        name: value
        for name, value in says.items()
        if value is not None and name not in given and getattr(wanted, name) == defaults[name]
    }
    return replace(wanted, **taken)


def _values(definition: Definition, inputs: Mapping[str, Any]) -> dict[str, Any]:
    """The values of all variables; whatever is wrong with them is told at once."""
    faults: dict[str, list[str]] = {}
    variables = definition.manifest.variables
    for name, value in inputs.items():
        if name not in variables:
            faults[f"inputs.{name}"] = [f"is no variable of the template; it has {', '.join(variables) or 'none'}"]
        elif (reason := wrong(variables[name], value)) is not None:
            faults[f"inputs.{name}"] = [reason]
        elif len(text := value_text(value)) > _LONGEST_INPUT:
            faults[f"inputs.{name}"] = [f"is longer than {_LONGEST_INPUT} characters"]
        elif holds_secret(text):
            faults[f"inputs.{name}"] = ["looks like a credential, and inputs carry none: use env or provider"]
    missing = [name for name, each in variables.items() if each.required and each.default is None]
    faults |= {f"inputs.{name}": ["is required"] for name in missing if name not in inputs}
    if faults:
        reason = "; ".join(f"{field} {reasons[0]}" for field, reasons in faults.items())
        raise Unprocessable(reason=f"{reason}.", errors=faults)
    return {name: inputs.get(name, each.default) for name, each in variables.items()}


def _instructions(definition: Definition) -> str:
    skills = [f"# Skill: {each.name}\n\n{each.description}\n\n{each.text}" for each in definition.skills]
    return "\n\n".join(filter(None, [definition.instructions.strip(), *skills]))


def _invalid(field: str, reason: str) -> InvalidRequest:
    return InvalidRequest(reason=f"{field} {reason}.", errors={field: [reason]})


def given_fields(kind: type[msgspec.Struct], sent: Any) -> frozenset[str]:
    """The fields that a body names, as we call them; what is null is not said."""
    names = dict(zip(kind.__struct_encode_fields__, kind.__struct_fields__, strict=True))
    named: dict[str, Any] = sent if isinstance(sent, dict) else {}
    return frozenset(names.get(name, name) for name, value in named.items() if value is not None)


def given_settings(sent: Any) -> frozenset[str]:
    """The settings that the body of a task names."""
    agent = sent.get("agent") if isinstance(sent, dict) else None
    return given_fields(TaskSettings, agent.get("settings") if isinstance(agent, dict) else None)
