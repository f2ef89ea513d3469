"""What differs between agents that speak ACP, as data: a profile is a file of its own and knows no protocol."""

from collections.abc import Callable
from typing import Any

import msgspec

from ostler.agents.adapter import Credential, Login
from ostler.agents.instructions import has_own_home
from ostler.agents.sources import Source
from ostler.base.errors import Unprocessable
from ostler.wire.agents import Capabilities, Mode, Model
from ostler.wire.events import PermissionMode
from ostler.wire.providers import ProviderType
from ostler.wire.running import AgentSpec


class Setup(msgspec.Struct, frozen=True, kw_only=True):
    """What one session needs at the start of its process, beside what all sessions of the agent need."""

    before: tuple[str, ...] = ()
    """A command that gets the agent's own command as its last arguments."""
    args: tuple[str, ...] = ()
    env: dict[str, str] = msgspec.field(default_factory=dict)
    files: dict[str, str] = msgspec.field(default_factory=dict)


def nothing(_: AgentSpec) -> Setup:
    """An agent that is configured by its environment alone."""
    return Setup()


class Profile(msgspec.Struct, frozen=True, kw_only=True):
    """One agent that speaks ACP."""

    id: str
    name: str
    capabilities: Capabilities
    sources: tuple[Source, ...]
    unconverted: dict[str, str] = msgspec.field(default_factory=dict)
    """Capabilities that the agent has but that do not arrive over ACP -> why."""
    args: tuple[str, ...] = ()
    """After the program, to make it speak ACP."""
    env: dict[str, str] = msgspec.field(default_factory=dict)
    credentials: tuple[Credential, ...] = ()
    login: Login = Login()
    unusable_logins: tuple[str, ...] = ()
    """Ways to log in that it tells but that cannot be gone here: they need its own screen, or only want a key."""
    providers: tuple[ProviderType, ...] = ()
    """Which kinds of provider `configure` can set up."""
    configure: Callable[[AgentSpec], Setup] = nothing
    permission_modes: dict[PermissionMode, str] | None = None
    """Our permission mode -> the agent's mode; None when it is only known once the agent runs."""
    modes: tuple[Mode, ...] = ()
    """Empty when they are only known once the agent runs."""
    models: tuple[Model, ...] = ()
    model_at_start: bool = False
    """Whether `configure` sets the model; otherwise it is chosen by protocol."""
    instructions_at_start: bool = False
    """Whether `configure` writes a session's instructions into files of its home."""
    steers: bool = False
    """Whether the agent fetches messages in the middle of a turn."""
    id_separator: str | None = None
    """What stands between a tool's name and the rest of a call's id, for agents that do not tell the name."""
    titles_are_names: bool = False
    """Whether the first title of a call is the tool's name."""
    arguments_in_content: bool = False
    """Whether a call's content holds its arguments as they are written, until the result takes their place."""
    mode_marker: str | None = None
    """How text begins that is really a change of the mode."""
    hidden_thoughts: tuple[str, ...] = ()
    """How thoughts begin that nobody thought, such as a repeated system prompt."""
    chatter: tuple[bytes, ...] = ()
    """How lines begin that are no messages, such as a farewell."""
    late_history: bool = False
    """Whether the history of a loaded session is still being sent when the load is answered."""
    stand_in: str | None = None
    """How ids begin of tool calls that are none and only carry a permission request."""

    def check(self, spec: AgentSpec) -> None:
        """Raise Unprocessable for what the agent surely cannot do."""
        if spec.provider is not None and spec.provider.type not in self.providers:
            self._refuse("provider type", spec.provider.type, self.providers)
        if self.modes and spec.mode is not None and spec.mode not in (ids := tuple(mode.id for mode in self.modes)):
            self._refuse("mode", spec.mode, ids)
        if self.permission_modes is not None and spec.permission_mode not in self.permission_modes:
            self._refuse("permission mode", spec.permission_mode, tuple(self.permission_modes))
        if spec.variant is not None and not self.capabilities.variants:
            self._refuse("variant", spec.variant, ())

    def tells(self, spec: AgentSpec) -> bool:
        """Whether instructions stand before the first prompt, because no file of the agent can hold them."""
        return not (self.instructions_at_start and has_own_home(spec))

    def _refuse(self, what: str, value: str, possible: tuple[str, ...]) -> None:
        offer = f"Possible: {', '.join(possible)}." if possible else "It has none."
        reason = f"Agent '{self.id}' has no {what} '{value}'. {offer}"
        raise Unprocessable(reason=reason, errors={what.replace(" ", "_"): [f"'{value}' cannot be had. {offer}"]})


def extension(folder: str, manifest: str, spec: AgentSpec) -> dict[str, str]:
    """The files of an extension that brings a session's instructions along, whichever context files are in use."""
    if not spec.instructions:
        return {}
    place = f"{folder}/extensions/ostler"
    described = {"name": "ostler", "version": "1.0.0", "contextFileName": "instructions.md"}
    return {
        f"{place}/{manifest}": msgspec.json.encode(described).decode(),
        f"{place}/instructions.md": spec.instructions,
    }


def toml_text(values: dict[str, Any]) -> str:
    """Plain values, then tables by their dotted names, as TOML; a name in brackets is one entry of a list of tables."""
    plain = {name: value for name, value in values.items() if not isinstance(value, dict)}
    tables = {name: value for name, value in values.items() if isinstance(value, dict)}
    lines = _toml_lines(plain)
    for name, table in tables.items():
        lines += ["", f"[{name}]", *_toml_lines(table)]
    return "\n".join(lines) + "\n"


def _toml_lines(values: dict[str, Any]) -> list[str]:
    # JSON writes strings, numbers, booleans and lists as TOML does
    return [f"{name} = {msgspec.json.encode(value).decode()}" for name, value in values.items()]
