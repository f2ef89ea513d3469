"""What the files of a template say, with everything that is wrong with them at once."""

import re
import tomllib
from collections.abc import Iterator, Mapping
from typing import Any, cast

import msgspec

from ostler.base.redaction import holds_secret, is_secret_name
from ostler.server.templates.folders import Faults, Folder, skill_of
from ostler.wire.events import PermissionMode, PermissionRules
from ostler.wire.prompts import NAME
from ostler.wire.providers import LARGEST_CODE_TOOL, TOOL_NAME, CodeTool, HttpMcpServer, McpServer, StdioMcpServer
from ostler.wire.sessions import MOST_INSTRUCTIONS, TurnLimits
from ostler.wire.tasks import TaskDelivery, TaskRuntime
from ostler.wire.templates import PLACE, TemplateVariable, VariableType
from ostler.wire.workspaces import Repo

MANIFEST, INSTRUCTIONS, TOOLS = "template.toml", "AGENTS.md", "tools.json"
AGENT, INFRASTRUCTURE = "agent.toml", "infrastructure.toml"
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,63}")
_FIELD = re.compile(r"^(?P<name>name|description):[ \t]*(?P<value>.*)$", re.MULTILINE)
_LONGEST_DESCRIPTION = 1024
_TOOL = re.compile(r"tools/(?P<name>[^/]+)\.(?P<ending>py|ts)")
_TOOL_HEAD = re.compile(r"^(#|//) /// tool\n(?P<toml>(?:(?:#|//)[^\n]*\n)*?)(#|//) ///$", re.MULTILINE)


class _Manifest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """template.toml."""

    name: str = ""
    description: str | None = None
    version: str | None = None
    license: str | None = None
    prompt: str | None = None
    metadata: dict[str, str] = {}
    variables: dict[str, "Variable"] = {}


class Variable(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One of `[variables]`."""

    type: VariableType = "string"
    required: bool = False
    default: Any = None
    enum: tuple[Any, ...] = ()
    description: str | None = None


class AgentLayer(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """agent.toml: which agent, and how it works; `agents` overrides that for one of them."""

    agent: str | None = None
    model: str | None = None
    variant: str | None = None
    mode: str | None = None
    permission_mode: PermissionMode | None = None
    permission_rules: PermissionRules | None = None
    temperature: float | None = None
    tools: tuple[str, ...] | None = None
    turn_timeout_seconds: float | None = None
    limits: TurnLimits | None = None
    agents: dict[str, dict[str, Any]] = {}

    def for_agent(self, agent: str) -> "AgentLayer":
        """As it is for one agent."""
        return msgspec.structs.replace(self, **_converted(AgentLayer, self.agents.get(agent, {}), AGENT, []))


class InfrastructureLayer(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """infrastructure.toml: where it runs, on what, and how the result is handed over."""

    repo: Repo | None = None
    runtime: TaskRuntime | None = None
    setup: str | None = None
    delivery: TaskDelivery | None = None


class Skill(msgspec.Struct, frozen=True, kw_only=True):
    """One skill: what it is for, and what it says."""

    name: str
    description: str
    text: str


class _ToolHead(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What the head of a tool's file says."""

    description: str = ""
    input: dict[str, dict[str, Any]] = {}


class Definition(msgspec.Struct, frozen=True, kw_only=True):
    """What a template says, read."""

    manifest: _Manifest
    instructions: str = ""
    skills: tuple[Skill, ...] = ()
    mcp_servers: dict[str, McpServer] = {}
    code_tools: tuple[CodeTool, ...] = ()
    agent: AgentLayer = AgentLayer()
    infrastructure: InfrastructureLayer = InfrastructureLayer()

    @property
    def variables(self) -> dict[str, TemplateVariable]:
        """What inputs may fill."""
        return {
            name: msgspec.convert(each, TemplateVariable, from_attributes=True)
            for name, each in self.manifest.variables.items()
        }


def definition_of(folder: Folder, faults: Faults) -> Definition:
    """Read a template; what is wrong goes to the faults, and the rest is read all the same."""
    definition = Definition(
        manifest=_table(folder, MANIFEST, _Manifest, faults) or _Manifest(),
        instructions=_text(folder, INSTRUCTIONS, faults),
        skills=tuple(_skills(folder, faults)),
        mcp_servers=_servers(folder, faults),
        code_tools=tuple(_code_tools(folder, faults)),
        agent=_table(folder, AGENT, AgentLayer, faults) or AgentLayer(),
        infrastructure=_table(folder, INFRASTRUCTURE, InfrastructureLayer, faults) or InfrastructureLayer(),
    )
    if MANIFEST not in folder:
        faults.append((MANIFEST, 'is missing. Begin it with: name = "my-agent"'))
    elif not re.fullmatch(NAME, definition.manifest.name):
        faults.append((f"{MANIFEST}: name", "is required: up to 64 lower-case letters, digits and ._-"))
    _check_agents(definition.agent, faults)
    _check_variables(definition, faults)
    _check_infrastructure(definition.infrastructure, faults)
    return definition


def _text(folder: Folder, path: str, faults: Faults) -> str:
    if path not in folder:
        return ""
    try:
        text = folder[path].content.decode()
    except UnicodeDecodeError as error:
        faults.append((path, f"is not UTF-8 at byte {error.start}"))
        return ""
    if path == INSTRUCTIONS and (size := len(text.encode())) > MOST_INSTRUCTIONS:
        faults.append((path, f"has {size} bytes, and an agent is told at most {MOST_INSTRUCTIONS}"))
    return text


def _table(folder: Folder, path: str, kind: type[Any], faults: Faults) -> Any:
    if not (text := _text(folder, path, faults)):
        return None
    try:
        table = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        faults.append((path, f"is not TOML: {error}"))
        return None
    return kind(**_converted(kind, table, path, faults))


def _converted(kind: type[Any], table: dict[str, Any], path: str, faults: Faults) -> dict[str, Any]:
    """The fields of a table that are what they should be; all others are faults."""
    fields = {field.name: field for field in msgspec.structs.fields(kind)}
    found: dict[str, Any] = {}
    for name, value in table.items():
        if name not in fields:
            faults.append((f"{path}: {name}", f"is not known here; known are {', '.join(fields)}"))
            continue
        try:
            found[name] = msgspec.convert(value, fields[name].type)
        except msgspec.ValidationError as error:
            message, _, place = str(error).partition(" - at `$")
            faults.append((f"{path}: {name}{place.rstrip('`')}", message))
    return found


def _skills(folder: Folder, faults: Faults) -> list[Skill]:
    found = []
    for path in sorted(folder):
        if (name := skill_of(path)) is None or not (text := _text(folder, path, faults)):
            continue
        head, _, body = text.removeprefix("---\n").partition("\n---")
        about = {match["name"]: match["value"].strip().strip("\"'") for match in _FIELD.finditer(head)}
        if not text.startswith("---\n") or not body:
            faults.append((path, "must begin with a front matter of name and description between lines of ---"))
        elif about.get("name") != name:
            faults.append((f"{path}: name", f"must be '{name}', as its folder"))
        elif not 0 < len(about.get("description", "")) <= _LONGEST_DESCRIPTION:
            faults.append((f"{path}: description", f"must have 1 to {_LONGEST_DESCRIPTION} characters"))
        else:
            found.append(Skill(name=name, description=about["description"], text=body.strip()))
    return found


def _code_tools(folder: Folder, faults: Faults) -> Iterator[CodeTool]:
    """The programs of `tools/` whose head says what they take; nothing of them is run here."""
    for path in sorted(folder):
        found = _TOOL.fullmatch(path)
        if found is None or (head := _TOOL_HEAD.search(text := _text(folder, path, faults))) is None:
            continue
        says = "\n".join(re.sub(r"^(#|//) ?", "", line) for line in head["toml"].splitlines())
        try:
            fields = msgspec.convert(tomllib.loads(says), _ToolHead)
        except (tomllib.TOMLDecodeError, msgspec.ValidationError) as error:
            faults.append((f"{path}: its head", f"is not read: {error}"))
            continue
        tool = CodeTool(
            name=found["name"],
            description=fields.description.strip(),
            input_schema=_schema(fields.input),
            language="python" if found["ending"] == "py" else "typescript",
            code=text,
        )
        faults.extend((path, reason) for reason in _wrong_tool(tool))
        yield tool


def _schema(fields: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    needed = [name for name, field in fields.items() if "default" not in field]
    return {"type": "object", "properties": dict(fields), "required": needed, "additionalProperties": False}


def _wrong_tool(tool: CodeTool) -> Iterator[str]:
    if not re.fullmatch(TOOL_NAME, tool.name) or "__" in tool.name:
        yield "is named like no tool: use A-Z a-z 0-9 _ -, begin with a letter, and have no '__'"
    if not tool.description:
        yield "needs a description in its head, which says what the tool does"
    if (size := len(msgspec.json.encode(tool))) > LARGEST_CODE_TOOL:
        yield f"has {size} bytes as a tool, and {LARGEST_CODE_TOOL} are the most"
    if holds_secret(tool.code):
        yield "holds what looks like a credential. A tool runs without network and needs none"


def _servers(folder: Folder, faults: Faults) -> dict[str, McpServer]:
    """Tools as Claude Code's files have them; values that look like credentials do not belong into a template."""
    if not (text := _text(folder, TOOLS, faults)):
        return {}
    try:
        sent = msgspec.json.decode(text)
        servers = sent["mcpServers"] if isinstance(sent, dict) and set(sent) <= {"mcpServers"} else None
    except (msgspec.DecodeError, KeyError) as error:
        faults.append((TOOLS, f"is not read: {error}"))
        return {}
    if not isinstance(servers, dict):
        faults.append((TOOLS, 'must be {"mcpServers": {...}}'))
        return {}
    found: dict[str, McpServer] = {}
    for name, server in servers.items():
        place = f"{TOOLS}: {name}"
        try:
            found[name] = _server(server)
        except msgspec.ValidationError as error:
            faults.append((place, str(error)))
            continue
        if holds_secret(msgspec.json.encode(server).decode()):
            faults.append((place, "holds what looks like a credential. Give it to the session instead"))
    return found


def _server(server: Any) -> McpServer:
    kind = server.get("type", "http" if "url" in server else "stdio") if isinstance(server, dict) else "stdio"
    chosen = HttpMcpServer if kind == "http" else StdioMcpServer
    return cast(McpServer, msgspec.convert({**server, "type": kind} if isinstance(server, dict) else server, chosen))


def _check_agents(layer: AgentLayer, faults: Faults) -> None:
    for agent, table in layer.agents.items():
        _converted(AgentLayer, table, f"{AGENT}: agents.{agent}", faults)


def _check_infrastructure(layer: InfrastructureLayer, faults: Faults) -> None:
    credentials = {
        "repo.credential": layer.repo is not None and layer.repo.credential is not None,
        "delivery.credential": layer.delivery is not None and layer.delivery.credential is not None,
    }
    faults.extend(
        (f"{INFRASTRUCTURE}: {name}", "is a secret, and no part of a template. Give it with the session or task")
        for name, given in credentials.items()
        if given
    )


def _check_variables(definition: Definition, faults: Faults) -> None:
    variables = definition.manifest.variables
    for name, variable in variables.items():
        place = f"{MANIFEST}: variables.{name}"
        if not _VARIABLE.fullmatch(name):
            faults.append((place, "is no name: use letters, digits and _"))
        if is_secret_name(name):
            faults.append((place, "is named like a credential, and inputs carry none"))
        if variable.default is not None and (reason := wrong(variable, variable.default)) is not None:
            faults.append((f"{place}.default", reason))
    texts = {INSTRUCTIONS: definition.instructions, f"{MANIFEST}: prompt": definition.manifest.prompt or ""}
    for place, text in texts.items():
        for found in PLACE.finditer(text):
            if found["name"] not in variables:
                line = text.count("\n", 0, found.start()) + 1
                faults.append((f"{place}, line {line}", f"names the variable '{found['name']}', which is not declared"))


_TYPES: dict[VariableType, tuple[type[Any], ...]] = {
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "list": (list, tuple),
}


def wrong(variable: Any, value: Any) -> str | None:
    """Why a value is none for a variable."""
    if not isinstance(value, _TYPES[variable.type]) or (isinstance(value, bool) and variable.type != "boolean"):
        return f"must be of type {variable.type}"
    if variable.type == "list" and not all(isinstance(each, str) for each in value):
        return "must be a list of strings"
    if variable.enum and value not in variable.enum:
        return f"must be one of {', '.join(map(str, variable.enum))}"
    return None
