"""Real repositories, real file systems and a service to work on them."""

import os
import subprocess
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

from ostler.base.addresses import AddressRules
from ostler.runner.workspaces.library import WorkspaceLibrary
from ostler.runner.workspaces.options import Options
from ostler.runner.workspaces.orders import GitSource, Order
from ostler.runner.workspaces.repositories.policy import Policy
from ostler.wire.workspaces import Difference, SnapshotProvider, Workspace
from tests.support.serving import clean_env

_LIST = (
    "find . -path ./.git -prune -o -printf '%P %y %m %l\\n' | sort;"
    " find . -path ./.git -prune -o -type f -print0 | sort -z | xargs -0 -r sha256sum"
)
_MEBIBYTES = 400


def git(folder: Path, *arguments: str, given: bytes = b"") -> str:
    """Plain git, as a person would run it, in a clean environment."""
    env = clean_env(folder.parent / "home", {"GIT_CONFIG_NOSYSTEM": "1", "GIT_AUTHOR_DATE": "2026-01-01T00:00:00Z"})
    command = ["git", "-c", "user.name=Ann", "-c", "user.email=ann@example.com", "-c", "protocol.file.allow=always"]
    done = subprocess.run([*command, *arguments], cwd=folder, env=env, input=given, capture_output=True, check=False)
    assert done.returncode == 0, (arguments, done.stderr)
    return done.stdout.decode(errors="surrogateescape").strip()


def make_repository(folder: Path) -> Path:
    """A repository with everything that is awkward in one."""
    folder.mkdir(parents=True)
    git(folder, "init", "-q", "-b", "main")
    (folder / "README.md").write_text("Hello\n\nThis is a project.\n")
    (folder / "src").mkdir()
    (folder / "src" / "main.py").write_text("print('one')\nprint('two')\n")
    (folder / "src" / "old.py").write_text("".join(f"line {number}\n" for number in range(40)))
    (folder / "run.sh").write_text("#!/bin/sh\necho run\n")
    (folder / "run.sh").chmod(0o755)
    (folder / "grüße 日本.txt").write_text("unicode\n")
    (folder / 'with "quotes" and\ttab').write_text("odd\n")
    (folder / "link").symlink_to("README.md")
    (folder / ".gitignore").write_text("*.log\nbuild/\n")
    (folder / ".gitattributes").write_text(
        "*.bat text eol=crlf\n*.bin binary\n*.big filter=lfs diff=lfs merge=lfs -text\n"
    )
    (folder / "dos.bat").write_bytes(b"echo one\r\necho two\r\n")
    (folder / "mixed.txt").write_bytes(b"unix\ndos\r\n")
    (folder / "data.bin").write_bytes(bytes(range(256)) * 8)
    pointer = f"version https://git-lfs.example/spec/v1\noid sha256:{'4d7a2146' * 8}\nsize 12345\n"
    (folder / "model.big").write_text(pointer)
    (folder / "gone").mkdir()
    (folder / "gone" / "a.txt").write_text("a\n")
    (folder / "gone" / "b.txt").write_text("b\n")
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "-m", "one")
    return folder


def make_forged(folder: Path) -> Path:
    """A bare copy of such a repository where a forge below the folder has it, as team/project."""
    project = make_repository(folder / "origin" / "project")
    bare = folder / "forge" / "team" / "project.git"
    bare.parent.mkdir(parents=True)
    git(project, "clone", "-q", "--bare", ".", str(bare))
    git(bare, "config", "http.receivepack", "true")
    return bare


def tree_hash(folder: Path) -> str:
    """What a folder holds, `.git` included, as one text."""
    listing = "find . -printf '%P %y %m %s %T@ %l\\n' | sort; find . -type f -print0 | sort -z | xargs -0 -r sha256sum"
    return subprocess.run(["sh", "-c", listing], cwd=folder, capture_output=True, text=True, check=True).stdout


def content_of(folder: Path) -> str:
    """What a folder holds beside `.git`: names, kinds, modes, links and content."""
    return subprocess.run(["sh", "-c", _LIST], cwd=folder, capture_output=True, text=True, check=True).stdout


LOOPBACK = AddressRules.reading(("127.0.0.1",))
"""Rules for servers that tests run themselves."""


@asynccontextmanager
async def opened(root: Path, *folders: Path, **options: object) -> AsyncIterator[WorkspaceLibrary]:
    """A service below `root` that may use repositories in these folders."""
    policy = Policy(folders=tuple(map(str, folders)))
    chosen = Options(**{"policy": policy, **options})  # type: ignore[arg-type]  # each test says what it needs
    service = await WorkspaceLibrary.open(root, environ=os.environ, options=chosen)
    try:
        yield service
    finally:
        for workspace in service.all():
            await service.destroy(workspace.id)
        await service.close()


def order(
    repository: Path, *providers: SnapshotProvider, branch: str | None = "main", commit: str | None = None
) -> Order:
    """A workspace of a local repository with just these providers."""
    source = GitSource(url=str(repository), branch=branch, commit=commit)
    return Order(source=source, providers=providers, strict=bool(providers))


async def inside(service: WorkspaceLibrary, workspace: Workspace | str, script: str) -> str:
    """What a shell prints that runs in the workspace, as an agent would."""
    entry = await service.entry(workspace if isinstance(workspace, str) else workspace.id)
    home = Path(entry.folder).parent
    done = subprocess.run(
        entry.command(("sh", "-ec", script)),
        cwd=entry.folder,
        env={**clean_env(home / "home"), "GIT_CONFIG_GLOBAL": "/dev/null"},
        capture_output=True,
        text=True,
        errors="surrogateescape",
        check=False,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


async def contents(service: WorkspaceLibrary, workspace: Workspace | str) -> str:
    """What the agent finds in the workspace, beside `.git`."""
    return await inside(service, workspace, _LIST)


def summary(difference: Difference) -> dict[str, str]:
    """Path -> what happened."""
    return {file.path: file.status for file in difference.files}


@contextmanager
def loop_disk(folder: Path, kind: str) -> Iterator[Path]:
    """A file system of its own in a file, mounted while the block runs; needs root."""
    image, mount = folder / f"{kind}.img", folder / kind
    with image.open("wb") as file:
        file.truncate(_MEBIBYTES * 2**20)
    subprocess.run([f"mkfs.{kind}", "-q", str(image)], check=True, capture_output=True)
    mount.mkdir()
    subprocess.run(["mount", "-o", "loop", str(image), str(mount)], check=True, capture_output=True)
    try:
        yield mount
    finally:
        subprocess.run(["umount", "-l", str(mount)], check=True, capture_output=True)
