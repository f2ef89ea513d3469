"""The pages about errors and settings, straight from their tables."""

from typing import Any

import msgspec

from ostler.base.errors import ERRORS
from ostler.base.setting_groups.identity import ClaimRule
from ostler.base.setting_groups.tables import AgentSetting, PoolSetting
from ostler.base.settings import ENV_PREFIX, Settings
from ostler.cli.commands.serve import command as serve
from tools.reference.markdown import code, first_line, page, table, type_words

_ERRORS = """
The API answers every error as a problem document ([RFC 7807](https://www.rfc-editor.org/rfc/rfc7807)) of type
`application/problem+json`. Programs look at `code`, which never changes its meaning; people read `detail`.

```json
{"type": "...", "title": "Session not found", "status": 404, "code": "session_not_found", "detail": "There is no ..."}
```

Bad input also lists what is wrong with each field in `errors`. The same codes stand in `error` events of a session.
"""
_SETTINGS = """
A setting comes from a flag of `ostler serve`, else from its variable, else from the config file, else from its default.
The config file is TOML with the names below as keys: `$XDG_CONFIG_HOME/ostler/config.toml` (`~/.config` if unset), or
the file named by `--config` or `OSTLER_CONFIG`. The flag of a list is repeated for each value;
in a variable they are separated by commas. A switch that is on by default is turned off by its flag with `--no-`.

For development alone: with `OSTLER_ENV=development`, `ostler serve` also takes variables from `.env.development.local`
and `.env.development` in the folder where it starts, and says so. Lines are `NAME=VALUE`; what is set already wins,
then the first file. Without that variable no such file is read. `.env.example` in a checkout is one to begin with.
"""
_AGENT_SETTING = """
One agent in `agents`, such as the table `[agents.codex]` of the config file. A name that Ostler does not know makes a
new agent; see [how to install agents](../guides/install-agents.md).
"""
_POOL_SETTING = """
One pool in `pools`, such as the table `[pools.small]` of the config file: runners that the server makes itself, see
[how to have runners made](../guides/run-runners.md#have-runners-made).
"""
_CLAIM_RULE = """
One rule in `oidc_claims`, `github_claims` or `tls_client_claims`: what those may do who have a claim, see
[how people come with tokens](../guides/share-with-a-team.md#let-people-come-with-tokens-of-your-openid-provider).
"""
_BOUNDS = {"minimum": "at least", "exclusiveMinimum": "more than", "maximum": "at most"}
_STATE_DIR = "`$XDG_DATA_HOME/ostler`, or `~/.local/share/ostler`"


def errors_page() -> str:
    """The reference of all error codes."""
    rows = [
        (code(error.code), str(error.status), first_line(error), error.template)
        for error in sorted(ERRORS, key=lambda error: (error.status, error.code))
    ]
    return page("Errors", _ERRORS, table(("code", "status", "when", "detail"), rows))


def settings_page() -> str:
    """The reference of all settings."""
    schema = msgspec.json.schema(Settings)["$defs"]["Settings"]["properties"]
    flags = {parameter.name: parameter.opts[0] for parameter in serve.params}
    fields = msgspec.structs.fields(Settings)
    rows = [(code(field.name), code(flags[field.name]), *_cells(field, schema[field.name])) for field in fields]
    head = ("name", "flag", "variable", "value", "default", "meaning")
    agents = ("## AgentSetting", _AGENT_SETTING, _fields_of(AgentSetting))
    pools = ("## PoolSetting", _POOL_SETTING, _fields_of(PoolSetting))
    rules = ("## ClaimRule", _CLAIM_RULE, _fields_of(ClaimRule))
    return page("Settings", _SETTINGS, table(head, rows), *agents, *pools, *rules)


def _fields_of(kind: type[msgspec.Struct]) -> str:
    fields = msgspec.json.schema(kind)["$defs"][kind.__name__]["properties"]
    rows = [(code(name), type_words(schema), str(schema["description"])) for name, schema in fields.items()]
    return table(("name", "value", "meaning"), rows)


def _cells(field: msgspec.structs.FieldInfo, schema: dict[str, Any]) -> tuple[str, ...]:
    variable = code(ENV_PREFIX + field.name.upper())
    return variable, _allowed(field, schema), _default(field), str(schema["description"])


def _allowed(field: msgspec.structs.FieldInfo, schema: dict[str, Any]) -> str:
    bounds = [f"{words} {schema[name]}" for name, words in _BOUNDS.items() if name in schema]
    return ", ".join(["path" if field.name == "state_dir" else type_words(schema), *bounds])


def _default(field: msgspec.structs.FieldInfo) -> str:
    match field.default:
        case _ if field.name == "state_dir":
            return _STATE_DIR
        case None | () | "":
            return "none"
        case tuple() as values:
            return ", ".join(code(value) for value in values)
        case bool() as value:
            return code(str(value).lower())
        case value:
            return code(value)
