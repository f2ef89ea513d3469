"""`ostler templates`: stored definitions of agents and their revisions."""

import base64
import os
import subprocess
from pathlib import Path

import click

from ostler.cli.api import Noun, connect, json_option
from ostler.cli.output import clean, facts, removed, show, table
from ostler.cli.root import Target
from ostler.wire.templates import MOST_BYTES, MOST_FILES, TemplateFile, TemplateFiles, TemplateRevision

_EMPTY = "There are no templates. Push a folder: ostler templates push ./my-agent"
_SHORT = 19
"""So much of a revision's name is shown in tables."""
_name = click.argument("name")
_revision = click.argument("revision", default="latest")


@click.group(cls=Noun)
def command() -> None:
    """Keep definitions of agents, and start sessions, tasks and schedules with them."""


@command.command("list")
@json_option
@click.pass_obj
def list_(target: Target, as_json: bool) -> None:
    """List the templates."""
    with connect(target) as client:
        found = client.templates.list()
    rows = [(each.name, each.agent, each.revision[:_SHORT], each.description) for each in found.items]
    show(found, as_json, lambda: table(("TEMPLATE", "AGENT", "REVISION", "DESCRIPTION"), rows, _EMPTY))


@command.command()
@click.argument("folder", type=click.Path(file_okay=False, path_type=Path))
@click.option("--tag", "tags", multiple=True, help="What the revision is called besides `latest`.")
@click.option("--commit", metavar="COMMIT", help="Take the folder as this git commit has it, not as it is on disk.")
@click.option("--check", is_flag=True, help="Only say what is wrong; store nothing.")
@json_option
@click.pass_obj
def push(target: Target, folder: Path, tags: tuple[str, ...], commit: str | None, check: bool, as_json: bool) -> None:
    """Store a folder as a revision of the template that its template.toml names."""
    if not folder.is_dir():
        raise click.ClickException(f"{folder} is no folder. Name the folder that has the template.toml.")
    found = commit_of(folder, commit) if commit is not None else None
    files = _files(folder) if found is None else _committed(folder, found)
    with connect(target) as client:
        pushed = client.templates.push(files, tags=tags, commit=found, check=check)
    verb = "Nothing is wrong with" if check else "Pushed"
    show(pushed, as_json, lambda: f"{verb} {pushed.name}@{pushed.revision}")


def _files(folder: Path) -> list[TemplateFile]:
    found: list[TemplateFile] = []
    size = 0
    for path in sorted(folder.rglob("*")):
        relative = path.relative_to(folder)
        if ".git" in relative.parts:
            continue
        if path.is_symlink():
            raise click.ClickException(f"{path} is a symbolic link. Put the file itself into the template.")
        if path.is_file():
            size += path.stat().st_size
            if size > MOST_BYTES or len(found) >= MOST_FILES:
                limit = f"{MOST_FILES} files and {MOST_BYTES} bytes"
                raise click.ClickException(f"{folder} is larger than a template may be ({limit}).")
            found.append(_file(relative.as_posix(), path.read_bytes(), executable=os.access(path, os.X_OK)))
    return found


def _file(path: str, content: bytes, *, executable: bool) -> TemplateFile:
    try:
        return TemplateFile(path=path, text=content.decode(), executable=executable)
    except UnicodeDecodeError:
        return TemplateFile(path=path, base64=base64.b64encode(content).decode(), executable=executable)


def commit_of(folder: Path, commit: str) -> str:
    """The full name of a commit of the repository that a folder is in."""
    return _git(folder, "rev-parse", "--verify", "--end-of-options", f"{commit}^{{commit}}").decode().strip()


def _committed(folder: Path, commit: str) -> list[TemplateFile]:
    """The files as a commit has them, whatever filters a checkout would run."""
    found = []
    for line in _git(folder, "ls-tree", "-r", "-z", commit, ".").split(b"\0"):
        if not line:
            continue
        about, _, path = line.partition(b"\t")
        mode, kind, digest = about.decode().split()
        if kind != "blob" or mode == "120000":
            raise click.ClickException(f"{path.decode(errors='replace')} is no file. A template has files only.")
        content = _git(folder, "cat-file", "blob", digest)
        found.append(_file(path.decode(), content, executable=mode == "100755"))
    return found


def _git(folder: Path, *words: str) -> bytes:
    try:
        done = subprocess.run(["git", "-C", str(folder), *words], capture_output=True, check=True)
    except FileNotFoundError:
        raise click.ClickException("--commit needs git, which is not installed.") from None
    except subprocess.CalledProcessError as error:
        raise click.ClickException(f"git says: {clean(error.stderr.decode(errors='replace')).strip()}") from None
    return done.stdout


@command.command("show")
@_name
@json_option
@click.pass_obj
def show_(target: Target, name: str, as_json: bool) -> None:
    """Show the newest revision of a template."""
    with connect(target) as client:
        found = client.templates.show(name)
    show(found, as_json, lambda: _about(found))


@command.command()
@_name
@json_option
@click.pass_obj
def revisions(target: Target, name: str, as_json: bool) -> None:
    """List the revisions of a template, the newest first."""
    with connect(target) as client:
        found = client.templates.revisions(name)
    rows = [(each.revision[:_SHORT], ", ".join(each.tags), each.created_at, each.commit) for each in found.items]
    show(found, as_json, lambda: table(("REVISION", "TAGS", "PUSHED", "COMMIT"), rows, _EMPTY))


@command.command()
@_name
@_revision
@json_option
@click.pass_obj
def revision(target: Target, name: str, revision: str, as_json: bool) -> None:
    """Show one revision, by its name or a tag."""
    with connect(target) as client:
        found = client.templates.revision(name, revision)
    show(found, as_json, lambda: _about(found))


def _about(found: TemplateRevision) -> str:
    variables = {name: each.type for name, each in found.variables.items()}
    return facts(
        [
            ("template", found.name),
            ("revision", found.revision),
            ("tags", found.tags),
            ("description", found.description),
            ("version", found.version),
            ("agent", found.agent),
            ("variables", variables),
            ("skills", found.skills),
            ("tools", found.code_tools),
            ("files", found.files),
            ("bytes", found.size),
            ("commit", found.commit),
            ("pushed", found.created_at),
        ]
    )


@command.command()
@_name
@click.argument("folder", type=click.Path(file_okay=False, path_type=Path))
@click.option("--revision", default="latest", show_default=True, help="A revision or a tag.")
@json_option
@click.pass_obj
def export(target: Target, name: str, folder: Path, revision: str, as_json: bool) -> None:
    """Write a revision to a new folder, byte for byte as it was pushed."""
    if folder.exists() and any(folder.iterdir()):
        raise click.ClickException(f"{folder} is not empty. Choose a new folder.")
    with connect(target) as client:
        found = client.templates.export(name, revision)
    _write(folder, found)
    show(found, as_json, lambda: f"Wrote {len(found.files)} files of {found.name}@{found.revision} to {folder}.")


def _write(folder: Path, found: TemplateFiles) -> None:
    for file in found.files:
        path = folder.joinpath(*file.path.split("/"))
        if not path.resolve().is_relative_to(folder.resolve()):
            raise click.ClickException(f"The server sent a file that is not below the folder: {clean(file.path)}")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(base64.b64decode(file.base64) if file.base64 is not None else (file.text or "").encode())
        if file.executable:
            path.chmod(0o755)


@command.command()
@_name
@click.argument("old")
@click.argument("new", default="latest")
@json_option
@click.pass_obj
def diff(target: Target, name: str, old: str, new: str, as_json: bool) -> None:
    """Show what differs between two revisions or tags."""
    with connect(target) as client:
        found = client.templates.diff(name, old, new)
    lines = [each.diff or f"{each.change}: {each.path}\n" for each in found.changes]
    show(found, as_json, lambda: clean("".join(lines)).rstrip("\n") or "Nothing differs.")


@command.command()
@_name
@click.argument("tag")
@click.argument("revision")
@json_option
@click.pass_obj
def tag(target: Target, name: str, tag: str, revision: str, as_json: bool) -> None:
    """Give a revision a tag; it moves if another one has it."""
    with connect(target) as client:
        found = client.templates.tag(name, tag, revision)
    show(found, as_json, lambda: f"{found.name}@{tag} is {found.revision}")


@command.command()
@_name
@json_option
@click.pass_obj
def remove(target: Target, name: str, as_json: bool) -> None:
    """Forget a template with all its revisions; sessions that began with it go on."""
    with connect(target) as client:
        client.templates.remove(name)
    removed(name, as_json, f"Removed the template '{name}'.")
