"""`ostler runner`: run agents on this machine for a server elsewhere."""

import os
from pathlib import Path
from typing import Any

import click

from ostler.base.errors import SettingsError
from ostler.base.settings import load_settings
from ostler.cli.api import pairs

_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)
_PEM = click.Path(path_type=Path)


@click.command()
@click.option(
    "--server",
    "servers",
    multiple=True,
    envvar="OSTLER_RUNNER_SERVER",
    metavar="URL",
    help="Server to dial; several are tried in turn. [OSTLER_RUNNER_SERVER, with spaces between]",
)
@click.option("--token", help="Registration token; in --token-file others cannot see it. [OSTLER_RUNNER_TOKEN]")
@click.option("--token-file", type=_FILE, metavar="FILE", help="File with the registration token.")
@click.option("--name", envvar="OSTLER_RUNNER_NAME", help="What people call this runner; the host's name by default.")
@click.option("--label", "labels", multiple=True, callback=pairs, metavar="NAME=VALUE", help="Label to be chosen by.")
@click.option("--slots", type=click.IntRange(1), help="Most sessions at work at a time; no limit by default.")
@click.option("--state-dir", metavar="FOLDER", help="Folder for everything of this runner. [OSTLER_STATE_DIR]")
@click.option(
    "--repository-folder",
    "repository_folders",
    multiple=True,
    metavar="FOLDER",
    help="Folder of this machine below which repositories, folders and the `cwd` of sessions may lie; several are "
    "possible. [OSTLER_REPOSITORY_FOLDERS]",
)
@click.option(
    "--insecure",
    is_flag=True,
    envvar="OSTLER_INSECURE",
    help="Allow http to another machine, where others can read along. [OSTLER_INSECURE]",
)
@click.option("--leave", is_flag=True, help="Leave for good when stopped: its sessions go on elsewhere at once.")
@click.option("--ca-file", type=_PEM, metavar="FILE", help="Authorities to trust. [OSTLER_CA_FILE]")
@click.option("--client-cert", type=_PEM, metavar="FILE", help="Certificate to show to the server.")
@click.option("--client-key", type=_PEM, metavar="FILE", help="Its key, if that is in a file of its own.")
@click.option("--config", metavar="FILE", help="Read settings from this file. [OSTLER_CONFIG]")
def command(
    token: str | None,
    token_file: Path | None,
    state_dir: str | None,
    config: str | None,
    repository_folders: tuple[str, ...],
    **given: Any,
) -> int:
    """Run agents on this machine for a server elsewhere.

    The first start needs a registration token (see `ostler runners token`). Settings of agents and workspaces are those
    of `ostler serve`, from OSTLER_* variables and the config file.
    """
    from ostler.runner_app import RunnerOptions, run  # noqa: PLC0415 - only this command is a runner

    flags = {"state_dir": state_dir, "config": config, "repository_folders": repository_folders or None}
    settings = load_settings(flags=flags, environ=os.environ)
    token = _token(token, token_file)
    return run(settings, RunnerOptions(token=token, **given))


def _token(given: str | None, file: Path | None) -> str | None:
    try:
        text = given or (file.read_text() if file is not None else os.environ.get("OSTLER_RUNNER_TOKEN"))
    except (OSError, ValueError) as error:
        raise SettingsError(name="token_file", value=file, reason=f"cannot be read ({error}).") from error
    return (text or "").strip() or None
