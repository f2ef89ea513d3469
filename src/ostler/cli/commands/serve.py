"""`ostler serve`: flags are made from the settings, so none can be forgotten."""

import gc
import os
from pathlib import Path
from typing import Any

import click
import msgspec

from ostler.base.development import WHEN, development_files, with_files
from ostler.base.settings import ENV_PREFIX, Settings, load_settings, setting_help


def _option(field: msgspec.structs.FieldInfo, text: str) -> click.Option:
    flag = "--" + field.name.replace("_", "-")
    text = f"{text} [{ENV_PREFIX}{field.name.upper()}]"
    if field.default is True:
        return click.Option([f"{flag}/--no-{flag[2:]}", field.name], default=None, help=f"{text} Default: on.")
    if field.default is False:
        return click.Option([flag, field.name], is_flag=True, default=None, help=text)
    if isinstance(field.default, tuple):
        return click.Option([_singular(flag), field.name], multiple=True, help=f"{text} Repeatable.")
    shown = None if field.default in (None, msgspec.NODEFAULT) else str(field.default)
    return click.Option([flag, field.name], metavar="VALUE", help=f"{text} Default: {shown}." if shown else text)


def _singular(flag: str) -> str:
    if flag.endswith("ies"):
        return f"{flag.removesuffix('ies')}y"
    return flag.removesuffix("es") if flag.endswith("sses") else flag.removesuffix("s")


def _options() -> list[click.Parameter]:
    texts = setting_help()
    made: list[click.Parameter] = [_option(field, texts[field.name]) for field in msgspec.structs.fields(Settings)]
    return [
        *made,
        click.Option(["--config"], metavar="FILE", help=f"Read settings from this file. [{ENV_PREFIX}CONFIG]"),
    ]


def _serve(**flags: Any) -> int:
    gc.disable()  # until the server answers: looking for garbage takes a quarter of the start, and there is none
    from ostler.app import serve  # noqa: PLC0415 - only this command may see the server

    given = {name: value for name, value in flags.items() if value not in (None, ())}
    files = development_files(os.environ, Path.cwd())
    settings = load_settings(flags=given, environ=with_files(os.environ, files))
    if files:
        named = " and ".join(file.name for file in files)
        click.echo(f"Development ({WHEN}): variables of {named} count too. Never run a server for others so.", err=True)
    return serve(settings)


command = click.Command("serve", callback=_serve, params=_options(), help="Start the server.")
