"""A real container engine for tests: podman with a store of its own and an image made from this machine's Python.

Nothing is pulled, nothing is written outside of one folder, and containers have no network. The settings are the ones
that also work inside another container: no overlay mounts, no limits above those of the caller.
"""

import os
import shutil
import subprocess
import sys
import sysconfig
import tarfile
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

import msgspec

IMAGE = "localhost/ostler-test:1"
SHELL = "localhost/ostler-shell:1"
"""An image with a shell and the libraries that a Python needs, and no Python."""
OTHER = "localhost/ostler-other:1"
"""The same with a Python in which the packages of Ostler cannot be imported."""
LITTLE = "localhost/ostler-little:1"
"""An image with a shell alone."""
BARE = "localhost/ostler-bare:1"
"""An image with nothing but folders; with VOLUMES mounted, this machine's programs run in it."""
VOLUMES = ("/usr", sys.base_prefix, sys.prefix, str(Path(__file__).resolve().parents[2] / "src"))
_LINKS = ("bin", "lib", "lib64", "sbin")
_FOLDERS = ("dev", "etc", "proc", "root", "run", "sys", "tmp", "usr", "var")
_CONF = """[containers]
default_ulimits = ["nofile=1024:1024", "nproc=1024:1024"]
netns = "none"
[engine]
events_logger = "file"
cgroup_manager = "cgroupfs"
"""
_LEFT_OUT = {"__pycache__", "site-packages", "dist-packages", "test", "tests", "idlelib", "tkinter", "ensurepip"}
_NO_DOCKER = "#!/bin/sh\necho no docker here >&2\nexit 1\n"


def install_engine(folder: Path) -> Path:
    """Put a podman with its own store, and a docker that does not answer, into a folder for the PATH."""
    podman = shutil.which("podman")
    assert podman, "podman is not installed; `make test` installs it as root"
    binaries = folder / "bin"
    binaries.mkdir(parents=True)
    (folder / "containers.conf").write_text(_CONF)
    places = f"--root '{folder}/store' --runroot '{folder}/run' --tmpdir '{folder}/tmp'"
    flags = f"{places} --storage-driver vfs --runtime runc"
    lines = ["#!/bin/sh", f"export CONTAINERS_CONF='{folder}/containers.conf'", f"exec '{podman}' {flags} \"$@\"", ""]
    for name, text in (("podman", "\n".join(lines)), ("docker", _NO_DOCKER)):
        (binaries / name).write_text(text)
        (binaries / name).chmod(0o755)
    return binaries


def podman(binaries: Path, *words: str) -> str:
    """What the engine says."""
    command = [str(binaries / "podman"), *words]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, (words, done.stderr)
    return done.stdout.strip()


def import_image(binaries: Path, *, also: Sequence[Path] = ()) -> None:
    """An image with a shell and this Python, what these libraries need, and nothing else."""
    interpreter, stdlib = Path(sys.executable).resolve(), Path(sysconfig.get_path("stdlib"))
    added = {interpreter: interpreter, stdlib: stdlib}
    _import(binaries, IMAGE, added, {"/usr/bin/python3": interpreter}, also=also)


def import_shell_image(binaries: Path) -> None:
    """The image SHELL."""
    _import(binaries, SHELL, {}, {})


def import_little_image(binaries: Path) -> None:
    """The image LITTLE."""
    _import(binaries, LITTLE, {}, {}, has_libraries=False)


def import_other_image(binaries: Path) -> None:
    """The image OTHER: its Python has no module for TLS."""
    interpreter, stdlib = Path(sys.executable).resolve(), Path(sysconfig.get_path("stdlib"))
    added = {interpreter: Path("/usr/bin/python3"), stdlib: Path("/usr/lib") / stdlib.name}
    _import(binaries, OTHER, added, {}, left_out={f"_ssl{sysconfig.get_config_var('EXT_SUFFIX')}"})


def _import(
    binaries: Path,
    name: str,
    added: Mapping[Path, Path],
    links: Mapping[str, Path],
    *,
    left_out: Collection[str] = (),
    has_libraries: bool = True,
    also: Sequence[Path] = (),
) -> None:
    """An image with a shell, the libraries of this Python, and what is added: where it is here, and there."""
    archive = binaries.parent / "image.tar"
    interpreter = Path(sys.executable).resolve()
    modules = (Path(sysconfig.get_path("stdlib")) / "lib-dynload").glob("*.so")
    programs = [interpreter, *sorted(modules), *Path(msgspec.__file__).parent.glob("*.so")] if has_libraries else []

    def wanted(entry: tarfile.TarInfo) -> tarfile.TarInfo | None:
        return None if set(left_out) & set(Path(entry.name).parts) else _wanted(entry)

    with tarfile.open(archive, "w") as tar:
        for file in {Path("/bin/sh").resolve(), *_libraries([Path("/bin/sh"), *programs, *also])}:
            tar.add(file.resolve(), str(file))
        for here, there in added.items():
            tar.add(here, str(there), filter=wanted)
        for link, target in {**links, "/bin/sh": Path("/bin/sh").resolve()}.items():
            entry = tarfile.TarInfo(link)
            entry.type, entry.linkname = tarfile.SYMTYPE, str(target)
            tar.addfile(entry)
        for folder in ("tmp", "etc"):
            entry = tarfile.TarInfo(folder)
            entry.type, entry.mode = tarfile.DIRTYPE, 0o1777
            tar.addfile(entry)
    podman(binaries, "import", str(archive), name)
    archive.unlink()


def import_bare_image(binaries: Path) -> None:
    """The image BARE, which costs a container next to nothing."""
    archive = binaries.parent / "bare.tar"
    with tarfile.open(archive, "w") as tar:
        for name in _FOLDERS:
            entry = tarfile.TarInfo(name)
            entry.type, entry.mode = tarfile.DIRTYPE, 0o1777 if name == "tmp" else 0o755
            tar.addfile(entry)
        for name in _LINKS:
            if Path("/", name).is_symlink():
                tar.add(Path("/", name), name)
    podman(binaries, "import", str(archive), BARE)
    archive.unlink()


def _wanted(entry: tarfile.TarInfo) -> tarfile.TarInfo | None:
    return None if _LEFT_OUT & set(Path(entry.name).parts) or entry.name.endswith(".a") else entry


def _libraries(programs: list[Path]) -> set[Path]:
    """The shared libraries that programs are loaded with, where the loader looks for them."""
    env = {"PATH": os.environ["PATH"], "LANG": "C"}
    said = subprocess.run(["ldd", *map(str, programs)], env=env, capture_output=True, text=True, check=False).stdout
    words = {word for line in said.splitlines() if not line.endswith(":") for word in line.split()}
    return {Path(word) for word in words if word.startswith("/") and ".so" in word}
