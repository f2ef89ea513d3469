"""`ostler doctor`: is everything in place?"""

import os
import platform
import socket
import sqlite3
import sys
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import click

from ostler import __version__
from ostler.base.errors import SettingsError
from ostler.base.settings import Settings, load_settings
from ostler.cli.api import ApiCommand, connect, json_option
from ostler.cli.commands.doctor.cluster import cluster_checks
from ostler.cli.commands.doctor.engine import engine_checks
from ostler.cli.commands.doctor.finding import Check
from ostler.cli.commands.doctor.keepers import keeper_checks
from ostler.cli.commands.doctor.objects import object_checks
from ostler.cli.commands.doctor.workspaces import workspace_checks
from ostler.cli.output import json_text
from ostler.cli.root import Target
from ostler.client import Client, ClientError, ServerUnreachable
from ostler.wire.system import Version

OLDEST_PYTHON = (3, 11)
DATABASE = "ostler.db"


@click.command(cls=ApiCommand)
@click.option("--state-dir", metavar="FOLDER", help="Look here instead of the configured folder.")
@click.option("--cluster", is_flag=True, help="Check what several servers share, every server and every runner.")
@json_option
@click.pass_context
def command(ctx: click.Context, state_dir: str | None, cluster: bool, as_json: bool) -> None:
    """Check that everything is in place; exit code 1 if something is broken."""
    checks = []
    for check in _checks(ctx.obj, state_dir, cluster):
        checks.append(check)
        if not as_json:
            click.echo(_line(check))
    is_broken = any(check.level == "fail" for check in checks)
    if as_json:
        click.echo(json_text({"ok": not is_broken, "checks": checks}))
    ctx.exit(1 if is_broken else 0)


def _checks(target: Target, state_dir: str | None, cluster: bool) -> Iterator[Check]:
    yield _python()
    try:
        settings = load_settings(flags={"state_dir": state_dir}, environ=os.environ)
    except SettingsError as error:
        yield Check(level="fail", found=str(error), next_step="Correct the flag, variable or config file.")
        return
    if cluster:
        yield from cluster_checks(settings, target)
        return
    yield _folder(settings.state_dir)
    yield _postgres(settings.database) if settings.database else _database(settings.state_dir / DATABASE)
    yield from engine_checks(settings)
    yield from object_checks(settings)
    yield from keeper_checks(settings)
    yield from workspace_checks(settings)
    with connect(target) as client:
        yield from _server(client, target, settings)


def _python() -> Check:
    found = f"Python {platform.python_version()}, Ostler {__version__}"
    if sys.version_info < OLDEST_PYTHON:
        return Check(level="fail", found=found, next_step="Install Python 3.11 or newer.")
    return Check(level="ok", found=found)


def _folder(folder: Path) -> Check:
    existing = next(path for path in (folder, *folder.absolute().parents) if path.exists())
    if existing.is_dir() and os.access(existing, os.W_OK | os.X_OK):
        return Check(level="ok", found=f"State folder {folder} can be written")
    hint = "Choose another with --state-dir, or change its owner."
    return Check(level="fail", found=f"State folder {folder} cannot be written", next_step=hint)


def _database(path: Path) -> Check:
    if not path.exists():
        hint = "If your server has another folder, name it with --state-dir."
        return Check(level="ok", found=f"No database yet; the server makes {path}", next_step=hint)
    try:
        connection = sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True, timeout=2)
        try:
            (schema,) = connection.execute("PRAGMA user_version").fetchone()
            (sessions,) = connection.execute("SELECT count(*) FROM sessions").fetchone()
        finally:
            connection.close()
    except sqlite3.Error as error:
        hint = "Restore it from a backup, or choose another folder with --state-dir."
        return Check(level="fail", found=f"Database {path} cannot be read: {error}", next_step=hint)
    return Check(level="ok", found=f"Database {path} has schema {schema} and {sessions} sessions")


def _postgres(url: str) -> Check:
    """Whether somebody listens there; whether the name and the password are right, the server says when it starts."""
    parts = urlsplit(url)
    place = f"{parts.hostname or 'localhost'}:{parts.port or 5432}"
    try:
        socket.create_connection((parts.hostname or "localhost", parts.port or 5432), timeout=3).close()
    except OSError as error:
        hint = "Start PostgreSQL, or correct --database."
        return Check(level="fail", found=f"PostgreSQL at {place} cannot be reached: {error}", next_step=hint)
    return Check(level="ok", found=f"PostgreSQL at {place} can be reached")


def _server(client: Client, target: Target, settings: Settings) -> Iterator[Check]:
    try:
        version = client.system.version()
    except ServerUnreachable as error:
        yield Check(level="warn", found=f"No server at {error.address}", next_step="Start one with `ostler serve`.")
        yield _port(settings.host, settings.port)
        return
    except ClientError as error:
        hint = "Check --endpoint and --token; another program may use the port."
        yield Check(level="fail", found=f"The server at {target.endpoint} does not answer: {error}", next_step=hint)
        return
    yield _same_version(version, target.endpoint)
    yield _agents(client)


def _same_version(version: Version, endpoint: str) -> Check:
    found = f"Server {version.version} at {endpoint} answers"
    if version.version == __version__:
        return Check(level="ok", found=found)
    return Check(level="warn", found=f"{found}, this is {__version__}", next_step="Restart the server.")


def _port(host: str, port: int) -> Check:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError as error:
            hint = "Choose another with `ostler serve --port`."
            return Check(level="fail", found=f"Cannot listen on {host} port {port}: {error.strerror}", next_step=hint)
    return Check(level="ok", found=f"Port {port} is free")


def _agents(client: Client) -> Check:
    installed = [agent.id for agent in client.agents.list().items if agent.installed]
    if not installed:
        return Check(level="warn", found="No agent is installed", next_step="See `ostler agents list`.")
    return Check(level="ok", found=f"Installed agents: {', '.join(installed)}")


def _line(check: Check) -> str:
    colours = {"ok": "green", "warn": "yellow", "fail": "red"}
    text = f"{click.style(f'{check.level:<4}', fg=colours[check.level])}  {check.found}."
    return f"{text} {check.next_step}" if check.next_step else text
