"""What a session may bring along: names that are names, and variables that load nothing into other programs."""

import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from fnmatch import fnmatchcase
from typing import NoReturn

import msgspec

from ostler.base.addresses import AddressRules, Unresolved
from ostler.base.errors import InvalidRequest, Unprocessable
from ostler.server.sessions.settings import SessionChange
from ostler.server.store.records import SessionSpec
from ostler.wire.events import PermissionMode, PermissionRule
from ostler.wire.providers import (
    LARGEST_CODE_TOOL,
    TOOL_NAME,
    ClientTool,
    CodeTool,
    HttpMcpServer,
    McpServer,
    StdioMcpServer,
)
from ostler.wire.sessions import MOST_TEMPERATURE, MOST_TOKENS, MOST_TURNS, CreateSession
from ostler.wire.texts import (
    CHOICE,
    LINE,
    LONGEST_LABEL,
    LONGEST_LABEL_VALUE,
    MOST_LABELS,
    SERVER,
    TOKEN,
    VARIABLE,
)
from ostler.wire.workspaces import RepoCredential

_VARIABLE = re.compile(VARIABLE)
_CHOICE = re.compile(CHOICE)
_SERVER = re.compile(SERVER)
_LINE = re.compile(LINE)
_TOKEN = re.compile(TOKEN)
_CLIENT_TOOL = re.compile(TOOL_NAME)
_MOST_CLIENT_TOOLS, _LARGEST_CLIENT_TOOL = 64, 32 * 2**10
_CHOICES = ("model", "variant", "mode")
_REFUSED = (
    *("PATH", "HOME", "SHELL", "IFS", "ENV", "TMPDIR", "USER", "LOGNAME", "EDITOR", "VISUAL", "PAGER", "BROWSER"),
    *("LD_*", "DYLD_*", "GCONV_PATH", "LOCPATH", "GLIBC_TUNABLES", "MALLOC_*", "XDG_*", "OSTLER_*", "GIT_*", "SSH_*"),
    *("BASH_*", "BASHOPTS", "SHELLOPTS", "PROMPT_COMMAND", "PS4", "ZDOTDIR", "CDPATH"),
    *("NODE_OPTIONS", "NODE_PATH", "NODE_REPL_*", "NPM_CONFIG_*", "npm_config_*", "BUN_*", "DENO_*"),
    *("PYTHON*", "PERL*", "RUBY*", "PHP*", "LUA_*", "DOTNET_*", "CORECLR_*", "COMPlus_*"),
    *("JAVA_TOOL_OPTIONS", "_JAVA_OPTIONS", "JDK_JAVA_OPTIONS", "CLASSPATH", "ELECTRON_RUN_AS_NODE"),
)
"""They decide which programs run, what is loaded into them, or where they look for their configuration."""


class Admission(msgspec.Struct, frozen=True, kw_only=True):
    """What the operator allows beyond the usual."""

    allowed_env: tuple[str, ...] = ()
    addresses: AddressRules = AddressRules()

    async def check_addresses(self, spec: SessionSpec) -> None:
        """Raise for addresses that may not be called; what the agent itself calls must be found now."""
        if spec.provider is not None:
            await self._strictly(spec.provider.base_url, "provider.baseUrl")
        for name, server in spec.mcp_servers.items():
            if isinstance(server, HttpMcpServer):
                await self._strictly(server.url, f"mcpServers.{name}.url")
        for number, webhook in enumerate(spec.task.webhooks if spec.task is not None else ()):
            await self._loosely(webhook.url, f"webhooks[{number}].url")

    async def _loosely(self, url: str, field: str) -> None:
        """What the server calls is looked at again at every call."""
        with suppress(Unresolved):
            await self.addresses.checked(url, field)

    async def _strictly(self, url: str, field: str) -> None:
        try:
            await self.addresses.checked(url, field)
        except Unresolved as error:
            hint = "Check the name, or add it to the server's setting allowed_addresses."
            raise Unprocessable(reason=f"{field}: {error}. {hint}", errors={field: [str(error)]}) from error

    def check_env(self, env: Mapping[str, str]) -> None:
        """Raise for variables that no process can have, or that a session may not have."""
        check_variables("env", env)
        for name in env:
            if _is_one_of(name, _REFUSED) and not _is_one_of(name, self.allowed_env):
                reason = "decides what programs run or load, so a session may not set it"
                hint = f"Leave it out, or start the server with `--allowed-env {name}` (setting allowed_env)."
                raise Unprocessable(
                    reason=f"env: the variable {name} {reason}. {hint}", errors={f"env.{name}": [reason]}
                )


def _is_one_of(name: str, patterns: Iterable[str]) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in patterns)


def check_variables(field: str, env: Mapping[str, str]) -> None:
    """Raise for what is no variable."""
    for name, value in env.items():
        if not _VARIABLE.fullmatch(name) or "\0" in value:
            shown = f"{name[:80]!r}"
            reason = "must be of A-Z a-z 0-9 _ and not begin with a digit; the value must be without NUL"
            raise InvalidRequest(
                reason=f"{field} has a variable {shown} that no process can have: its name {reason}.",
                errors={f"{field}.{name[:80]}": [reason]},
            )


def check_choices(wanted: CreateSession | SessionChange, names: Mapping[str, str] | None = None) -> None:
    """Raise for a model, variant or mode that an agent could take for an option; `names` are the client's words."""
    for name in _CHOICES:
        value: str | None = getattr(wanted, name)
        if value is not None and not _CHOICE.fullmatch(value):
            _refuse_name((names or {}).get(name, name), value)


def check_ranges(wanted: CreateSession) -> None:
    """Raise for a limit or a temperature that no model can have."""
    ranges = {
        "limits.maxTurns": (wanted.limits.max_turns, 1, MOST_TURNS),
        "limits.maxTokens": (wanted.limits.max_tokens, 1, MOST_TOKENS),
        "temperature": (wanted.temperature, 0, MOST_TEMPERATURE),
    }
    for field, (value, least, most) in ranges.items():
        if value is not None and not least <= value <= most:
            reason = f"must be from {least} to {most}"
            raise Unprocessable(reason=f"{field} {value} {reason}.", errors={field: [reason]})


def check_labels(labels: Mapping[str, str] | None) -> None:
    """Raise for more labels than a session can have, and for those that no list could show."""
    if labels is not None and len(labels) > MOST_LABELS:
        reason = f"are {len(labels)}, and a session has {MOST_LABELS} at most; leave some out"
        raise InvalidRequest(reason=f"labels {reason}.", errors={"labels": [reason]})
    for name, value in (labels or {}).items():
        if not 0 < len(name) <= LONGEST_LABEL or not _LINE.fullmatch(name):
            reason = f"the name {name[:80]!r} must be of 1 to {LONGEST_LABEL} characters on one line"
            raise InvalidRequest(reason=f"labels: {reason}.", errors={"labels": [reason]})
        if len(value) > LONGEST_LABEL_VALUE or not _LINE.fullmatch(value):
            reason = f"{value[:80]!r} must be of {LONGEST_LABEL_VALUE} characters at most, on one line"
            raise InvalidRequest(reason=f"labels.{name}: {reason}.", errors={f"labels.{name}": [reason]})


def check_credential(field: str, credential: RepoCredential | None) -> None:
    """Raise for a token or a user that no request could carry; never shows the token."""
    if credential is None:
        return
    if not _TOKEN.fullmatch(credential.token):
        reason = "must be of 1 to 16384 letters, digits and signs, without spaces, line ends and control characters"
        raise InvalidRequest(reason=f"{field}.token {reason}.", errors={f"{field}.token": [reason]})
    if not _LINE.fullmatch(credential.user):
        reason = f"{credential.user[:80]!r} must be without control characters"
        raise InvalidRequest(reason=f"{field}.user: {reason}.", errors={f"{field}.user": [reason]})


def check_servers(servers: Mapping[str, McpServer] | None, field: str = "mcpServers") -> None:
    """Raise for a name of an MCP server that is none, and for variables that are none."""
    for name, server in (servers or {}).items():
        if not _SERVER.fullmatch(name):
            _refuse_name(field, name)
        if isinstance(server, StdioMcpServer):
            check_variables(f"{field}.{name}.env", server.env)


def check_rules(mode: PermissionMode, rules: Sequence[PermissionRule]) -> None:
    """Raise for rules that could not hold: in this mode agents ask nobody."""
    if mode == "bypass" and rules:
        reason = "decide what an agent asks, and with permissionMode bypass it asks nothing"
        raise Unprocessable(reason=f"permissionRules {reason}.", errors={"permissionRules": [reason]})


def check_client_tools(tools: Sequence[ClientTool]) -> None:
    """Raise for tools of a client that no model could be offered."""
    _check_tools("clientTools", tools, _LARGEST_CLIENT_TOOL)


def check_code_tools(tools: Sequence[CodeTool], beside: Sequence[ClientTool]) -> None:
    """Raise for programs that no model could be offered, also because a tool of the client has the same name."""
    _check_tools("codeTools", tools, LARGEST_CODE_TOOL)
    taken = {tool.name for tool in beside}
    for number, tool in enumerate(tools):
        if tool.name in taken:
            _refuse(f"codeTools[{number}].name", f"'{tool.name}' is one of clientTools too")
        if not tool.code.strip():
            _refuse(f"codeTools[{number}].code", "must be a program")


def _check_tools(name: str, tools: Sequence[ClientTool | CodeTool], largest: int) -> None:
    names = [tool.name for tool in tools]
    if len(tools) > _MOST_CLIENT_TOOLS:
        _refuse(name, f"are {len(tools)}, and a session has {_MOST_CLIENT_TOOLS} at most")
    for number, tool in enumerate(tools):
        field = f"{name}[{number}]"
        if not _CLIENT_TOOL.fullmatch(tool.name) or "__" in tool.name:
            _refuse(
                f"{field}.name", f"{tool.name[:80]!r} must be of A-Z a-z 0-9 _ -, begin with a letter, have no '__'"
            )
        if tool.name in names[:number]:
            _refuse(f"{field}.name", f"'{tool.name}' is there twice")
        if not tool.description.strip():
            _refuse(f"{field}.description", "must say what the tool does")
        if tool.input_schema.get("type", "object") != "object":
            _refuse(f"{field}.inputSchema", "must be a JSON Schema of an object")
        if len(msgspec.json.encode(tool)) > largest:
            _refuse(field, f"is larger than {largest // 2**10} KiB")


def _refuse(field: str, reason: str) -> NoReturn:
    raise Unprocessable(reason=f"{field} {reason}.", errors={field: [reason]})


def _refuse_name(field: str, value: str) -> None:
    reason = "must begin with a letter or digit and be of letters, digits, spaces and . _ : / @ + , = ( ) [ ] -"
    raise InvalidRequest(
        reason=f"{field} {value[:80]!r} is not a name: it {reason}. Choose one that the agent offers.",
        errors={field: [reason]},
    )
