"""Options that `run` and `sessions create` share."""

import sys
import tomllib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypedDict, TypeVar, cast, get_args

import click
import msgspec

from ostler.cli.api import pairs
from ostler.client import Client
from ostler.wire.events import PermissionMode, PermissionRule, RulePermission
from ostler.wire.sessions import TurnLimits
from ostler.wire.templates import LATEST, TemplateVariable, placed
from ostler.wire.workspaces import Repo

Command = TypeVar("Command", bound=Callable[..., Any])

_INSTRUCTIONS = (
    click.option("--instructions", metavar="TEXT", help="What the agent is told in every turn; empty for nothing."),
    click.option(
        "--instructions-file",
        type=click.Path(exists=True, dir_okay=False, path_type=Path),
        metavar="FILE",
        help="The same, from a file.",
    ),
)


def _rules(_ctx: click.Context, option: click.Parameter, values: tuple[str, ...]) -> tuple[PermissionRule, ...]:
    parts = [value.rpartition("=") for value in values]
    wrong = [value for value, (name, _, word) in zip(values, parts, strict=True) if not name or word not in _RULES]
    if wrong:
        raise click.BadParameter(f"'{wrong[0]}' is not TOOL={'|'.join(_RULES)}.", param=option)
    return tuple(PermissionRule(pattern=name, permission=cast(RulePermission, word)) for name, _, word in parts)


_RULES = get_args(RulePermission)
_OPTIONS = (
    click.option("--key", help="Your own name for the session; an existing one is continued."),
    click.option("--title", help="What people call the session."),
    click.option("--model", help="Model the agent uses."),
    click.option("--variant", help="Effort of the model."),
    click.option("--mode", help="Way of working, such as plan."),
    *_INSTRUCTIONS,
    click.option(
        "--system-prompt-file",
        type=click.File(encoding="utf-8"),
        metavar="FILE",
        help="What takes the place of the agent's own system prompt, where it lets you.",
    ),
    click.option("--max-turns", type=int, metavar="COUNT", help="Most calls of the model in a turn."),
    click.option("--max-tokens", type=int, metavar="COUNT", help="Most tokens in an answer of the model."),
    click.option("--temperature", type=float, help="How freely the model chooses its words."),
    click.option("--tool", "tools", multiple=True, metavar="NAME", help="The only tools that the model may have."),
    click.option(
        "--permission-mode",
        type=click.Choice(["default", "plan", "bypass"]),
        default="default",
        show_default=True,
        help="What the agent may do without asking.",
    ),
    click.option(
        "--rule",
        "permission_rules",
        multiple=True,
        callback=_rules,
        metavar="TOOL=PERMISSION",
        help="What is decided of a tool without asking: allow, ask or deny.",
    ),
    click.option("--env", multiple=True, callback=pairs, metavar="NAME=VALUE", help="Variable for the agent."),
    click.option("--cwd", metavar="FOLDER", help="Folder to work in; a new empty one by default."),
    click.option("--repo", metavar="URL", help="Git repository for a workspace of its own, instead of --cwd."),
    click.option("--branch", help="Branch or tag of the repository."),
    click.option("--setup", metavar="COMMAND", help="Shell command that makes the workspace ready."),
    click.option("--label", "labels", multiple=True, callback=pairs, metavar="NAME=VALUE", help="Label to find it by."),
    click.option("--turn-timeout", "turn_timeout_seconds", type=float, metavar="SECONDS", help="Longest turn."),
)


_TEMPLATE = (
    click.option("--template", metavar="NAME[@TAG]", help="A stored definition to begin with."),
    click.option(
        "--input", "inputs", multiple=True, callback=pairs, metavar="NAME=VALUE", help="For a variable of the template."
    ),
)


def template_options(command: Command) -> Command:
    """Give a command the options that choose a template."""
    return _with(command, _TEMPLATE)


def inputs_of(client: Client, template: str | None, given: dict[str, str]) -> dict[str, Any]:
    """Inputs as the variables of their template want them; texts that are none are left to the server to refuse."""
    if not given:
        return {}
    if template is None:
        raise click.UsageError("--input fills a template; name it with --template")
    name, _, revision = template.partition("@")
    variables = client.templates.revision(name, revision or LATEST).variables
    return {each: _input(text, variables.get(each)) for each, text in given.items()}


def _input(text: str, variable: TemplateVariable | None) -> Any:
    if variable is None or variable.type == "string":
        return text
    if variable.type == "list":
        return text.split(",")
    try:
        return msgspec.json.decode(text)
    except msgspec.DecodeError:
        return text


class ChosenTemplate(NamedTuple):
    """A template that a command begins with, as it is now."""

    reference: str
    """Its name and revision."""
    inputs: dict[str, Any]
    prompt: str | None
    has_repo: bool
    """Whether it says where its agent works."""


def chosen_template(client: Client, template: str, given: dict[str, str]) -> ChosenTemplate:
    """The revision that is named, with its prompt filled."""
    name, _, wanted = template.partition("@")
    known = client.templates.revision(name, wanted or LATEST)
    texts = {each.path: each.text or "" for each in client.templates.export(name, known.revision).files}
    inputs = inputs_of(client, template, given)
    values = {each: inputs.get(each, variable.default) for each, variable in known.variables.items()}
    prompt = tomllib.loads(texts["template.toml"]).get("prompt")
    return ChosenTemplate(
        reference=f"{name}@{known.revision}",
        inputs=inputs,
        prompt=placed(prompt, values) if prompt else None,
        has_repo="repo" in tomllib.loads(texts.get("infrastructure.toml", "")),
    )


class Arguments(TypedDict):
    """Arguments of `sessions.create` besides the agent."""

    key: str | None
    title: str | None
    model: str | None
    variant: str | None
    mode: str | None
    instructions: str | None
    system_prompt: str | None
    limits: TurnLimits
    temperature: float | None
    tools: tuple[str, ...] | None
    permission_mode: PermissionMode
    permission_rules: tuple[PermissionRule, ...]
    env: dict[str, str]
    cwd: str | None
    labels: dict[str, str]
    turn_timeout_seconds: float | None
    repo: Repo | None
    setup: str | None


def session_options(command: Command) -> Command:
    """Give a command the options of a new session."""
    return _with(command, _OPTIONS)


def instructions_options(command: Command) -> Command:
    """Give a command the options for instructions alone."""
    return _with(command, _INSTRUCTIONS)


def _with(command: Command, options: Sequence[Callable[[Command], Command]]) -> Command:
    for option in reversed(options):
        command = option(command)
    return command


def session_arguments(given: dict[str, Any]) -> Arguments:
    """The options as `sessions.create` takes them; a relative folder counts from here."""
    cwd = None if given["cwd"] is None else str(Path(given["cwd"]).expanduser().absolute())
    repo = None if given["repo"] is None else Repo(url=_address(given["repo"]), branch=given["branch"])
    chosen = {
        "cwd": cwd,
        "repo": repo,
        "instructions": instructions_of(given),
        "system_prompt": given["system_prompt_file"].read() if given["system_prompt_file"] else None,
        "limits": TurnLimits(max_turns=given["max_turns"], max_tokens=given["max_tokens"]),
        "tools": given["tools"] or None,
    }
    rest = {name: value for name, value in given.items() if name in Arguments.__annotations__}
    return cast(Arguments, {**rest, **chosen})


def instructions_of(given: dict[str, Any]) -> str | None:
    """The instructions, wherever they stand."""
    text: str | None = given["instructions"]
    file: Path | None = given["instructions_file"]
    if file is None:
        return text
    if text is not None:
        raise click.UsageError("--instructions and --instructions-file exclude each other")
    try:
        return file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise click.UsageError(f"--instructions-file '{file}' cannot be read ({error})") from None


def _address(repo: str) -> str:
    here = Path(repo).expanduser()
    return str(here.absolute()) if here.is_dir() else repo


def prompt_text(prompt: str) -> str:
    """The prompt itself, or standard input for `-`."""
    text = sys.stdin.read() if prompt == "-" else prompt
    if not text.strip():
        raise click.UsageError("The prompt is empty")
    return text
