"""Set up .venv from the locks, with nothing but Python and its venv module; cheap when nothing changed.

`setup.py runtime` installs what the server needs, `setup.py dev` also what the tests need, `setup.py web` builds the
web UI, `setup.py browser` finds a browser for its tests, `setup.py clients` installs the npm packages of
tests/clients, `setup.py sdk` builds the TypeScript SDK, and `setup.py lock` writes the locks anew. Works with an empty
HOME and without standard input; package indexes come from the PIP_* and UV_* settings of the machine, never from this
repository.
"""

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv"
CACHE = ROOT / ".cache"
TOOLS = CACHE / "tools"
LOCKS = ROOT / "requirements"
SETS = {"runtime": ("runtime.txt", "build.txt"), "dev": ("dev.txt",)}
GROUPS = {
    "uv.txt": ("--group", "pyproject.toml:uv"),
    "runtime.txt": ("pyproject.toml",),
    "node.txt": ("--group", "pyproject.toml:node"),
    "build.txt": ("--group", "pyproject.toml:build", "--constraints", "requirements/runtime.txt"),
    "dev.txt": (
        *("pyproject.toml", "--extra", "objects", "--extra", "temporal", "--group", "pyproject.toml:dev"),
        *("--constraints", "requirements/runtime.txt"),
    ),
}
BROWSERS = ("chromium", "chromium-browser", "google-chrome")
TEST_TOOLS = {
    "mkfs.btrfs": "btrfs-progs",
    "mkfs.xfs": "xfsprogs",
    "cc": "gcc libc6-dev",
    "podman": "podman netavark",
    "runc": "runc",
    "catatonit": "catatonit",
    "pg_createcluster": "postgresql",
    "pgbouncer": "pgbouncer",
    "nginx": "nginx",
    "ip": "iproute2",
    "iptables": "iptables",
    "faketime": "faketime",
    "bwrap": "bubblewrap",
    "tmux": "tmux",
    "sshd": "openssh-server",
    "rsync": "rsync",
}
UV_NAMES = {"index-url": "UV_DEFAULT_INDEX", "extra-index-url": "UV_INDEX", "find-links": "UV_FIND_LINKS"}


def main(argv: list[str]) -> int:
    """Do what the first argument says."""
    if sys.version_info < (3, 11):  # noqa: UP036 - make hands us whatever python3 is
        return _restart_with_newer_python(argv)
    if argv[:1] == ["lock"] and argv[1:] in ([], ["--upgrade"]):
        _lock(argv[1:])
    elif len(argv) == 1 and argv[0] in SETS:
        _install(argv[0])
        _compile(ROOT / "src" / "ostler")
        if argv[0] == "dev":
            _install_test_tools()
    elif argv == ["web"]:
        _build_web()
    elif argv == ["browser"]:
        _find_browser()
    elif argv == ["clients"]:
        _install_clients()
    elif argv == ["sdk"]:
        _build_sdk()
    else:
        print("usage: setup.py runtime | dev | web | browser | clients | sdk | lock [--upgrade]", file=sys.stderr)
        return 2
    return 0


def _restart_with_newer_python(argv: list[str]) -> int:
    found = next(filter(None, (shutil.which(f"python3.{minor}") for minor in (13, 12, 11, 14))), None)
    if found is None:
        raise SystemExit(
            "Ostler needs Python 3.11 or newer. Install it, or name it: make PYTHON=/path/to/python3.11 ..."
        )
    return subprocess.call([found, __file__, *argv])


def _install(name: str) -> None:
    """Make .venv hold this set of packages, unless a stamp says that it does; dev holds all that runtime needs."""
    if _is_current(name) or _is_current("dev"):
        return
    with _alone():
        started = time.monotonic()
        uv, env = _uv(), uv_environment()
        if not (VENV / "bin" / "python").exists():
            _say("creating .venv")
            _run([uv, "venv", "--quiet", "--clear", "--python", sys.executable, str(VENV)], env)
        _say(f"installing the locked {name} packages (once, until the lock changes)")
        exact = ["--exact"] if name == "dev" else []
        locks = [part for lock in SETS[name] for part in ("-r", str(LOCKS / lock))]
        install = [uv, "pip", "install", "--quiet", "--python", str(VENV / "bin" / "python")]
        _run([*install, "--require-hashes", *exact, *locks], env)
        _run([*install, "--no-deps", "--no-build-isolation", "--editable", str(ROOT)], env)
        _compile(VENV / "lib")
        _stamp(name).write_text(_key(name))
        _say(f"ready after {time.monotonic() - started:.0f} s")


def _compile(folder: Path) -> None:
    """Write bytecode: where the environment forbids Python to keep any, each start would compile everything."""
    command = [str(VENV / "bin" / "python"), "-m", "compileall", "-q", "-j", "0", str(folder)]
    subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)


def _build_web() -> None:
    """The web UI, built if its sources changed; the server also works without."""
    python = str(VENV / "bin" / "python")
    look = [python, "-c", "import hatch_build as web; raise SystemExit(not (web.is_fresh() or web.find_node()))"]
    with _alone():
        if subprocess.run(look, cwd=ROOT, check=False).returncode:
            _say("installing Node into .cache, since the machine has none that is new enough")
            install = [_uv(), "pip", "install", "--quiet", "--python", python, "--target", str(CACHE / "node")]
            _run([*install, "--require-hashes", "-r", str(LOCKS / "node.txt")], uv_environment())
        if subprocess.run([python, "hatch_build.py"], cwd=ROOT, stdin=subprocess.DEVNULL, check=False).returncode:
            _say("the web UI could not be built; everything else works without it")


def _find_browser() -> None:
    """A Chromium for the tests of the web UI."""
    if any(shutil.which(name) for name in BROWSERS):
        return
    if os.geteuid() != 0 or shutil.which("apt-get") is None:
        raise SystemExit("The tests of the web UI need Chromium. Install the package chromium and try again.")
    with _alone():
        _say("installing chromium with apt-get")
        _run(["apt-get", "update", "-qq"], dict(os.environ))
        quiet = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
        _run(["apt-get", "install", "-y", "-qq", "--no-install-recommends", "chromium"], quiet)


def _install_clients() -> None:
    """The chat, ACP and AG-UI clients that the tests run against a server."""
    install = "import hatch_build as web, pathlib; web.install_packages(web.find_node(), pathlib.Path('tests/clients'))"
    with _alone():
        _run([str(VENV / "bin" / "python"), "-c", install], dict(os.environ))


def _build_sdk() -> None:
    """The TypeScript SDK, built if its sources or the API changed."""
    with _alone():
        _run([str(VENV / "bin" / "python"), "-m", "tools.typescript_sdk"], dict(os.environ))


def _is_current(name: str) -> bool:
    return _stamp(name).is_file() and _stamp(name).read_text() == _key(name)


def _stamp(name: str) -> Path:
    return VENV / f"ostler-{name}.stamp"


def _key(name: str) -> str:
    files = [LOCKS / lock for lock in SETS[name]] + [ROOT / "pyproject.toml"]
    return _digest(files, str(ROOT), "bytecode")  # an editable install points at its checkout, so a moved one is stale


def _digest(files: list[Path], *more: str) -> str:
    parts = [file.read_bytes() for file in files] + [text.encode() for text in more]
    return hashlib.sha256(b"\0".join(parts)).hexdigest()


@contextmanager
def _alone() -> Iterator[None]:
    """Keep two makes at once from writing the same .venv."""
    CACHE.mkdir(exist_ok=True)
    with (CACHE / "setup.lock").open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        yield


def _uv() -> str:
    """The locked uv in a private environment, so that nothing of the machine is presumed or changed."""
    uv, stamp, key = TOOLS / "bin" / "uv", TOOLS / "uv.stamp", _digest([LOCKS / "uv.txt"], str(ROOT))
    if not (uv.exists() and stamp.is_file() and stamp.read_text() == key):
        _say("installing uv into .cache")
        _make_tools_environment()
        pip = [str(TOOLS / "bin" / "python"), "-m", "pip", "install", "--quiet", "--no-input"]
        _run([*pip, "--disable-pip-version-check", "--require-hashes", "-r", str(LOCKS / "uv.txt")], dict(os.environ))
        stamp.write_text(key)
    return str(uv)


def _make_tools_environment() -> None:
    command = [sys.executable, "-m", "venv", "--clear", str(TOOLS)]
    if subprocess.run([sys.executable, "-c", "import ensurepip"], stderr=subprocess.DEVNULL, check=False).returncode:
        package = f"python3.{sys.version_info.minor}-venv"
        if os.geteuid() != 0 or shutil.which("apt-get") is None:
            raise SystemExit(f"This Python cannot make environments. Install the package {package} and try again.")
        _say(f"installing {package} with apt-get")
        _run(["apt-get", "update", "-qq"], dict(os.environ))
        _run(["apt-get", "install", "-y", "-qq", package], {**os.environ, "DEBIAN_FRONTEND": "noninteractive"})
    _run(command, dict(os.environ))


def _install_test_tools() -> None:
    """Programs that tests need: those that make file systems of their own, a compiler, and a container engine."""
    missing = [
        package for program, names in TEST_TOOLS.items() if shutil.which(program) is None for package in names.split()
    ]
    if missing and os.geteuid() == 0 and shutil.which("apt-get"):
        _say(f"installing {' and '.join(missing)} with apt-get, for tests")
        env = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
        for words in (["update", "-qq"], ["install", "-y", "-qq", "--no-install-recommends", *missing]):
            subprocess.run(
                ["apt-get", *words], env=env, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, check=False
            )


def uv_environment() -> dict[str, str]:
    """The environment with pip's index settings told to uv, which does not read them itself."""
    env = {"UV_PYTHON_DOWNLOADS": "never", "UV_NO_PROGRESS": "1", **os.environ}
    env.pop("VIRTUAL_ENV", None)
    settings = _pip_settings()
    for pip_name, uv_name in UV_NAMES.items():
        if pip_name in settings:
            separator = "," if pip_name == "find-links" else " "
            env.setdefault(uv_name, separator.join(settings[pip_name].split()))
    if "cert" in settings:
        env.setdefault("SSL_CERT_FILE", settings["cert"])
    if "UV_INDEX" in env:
        env.setdefault("UV_INDEX_STRATEGY", "unsafe-best-match")  # as pip does; the hashes keep it safe
    if not os.access(Path(env.get("HOME") or "/nonexistent"), os.W_OK):
        env.setdefault("UV_CACHE_DIR", str(CACHE / "uv"))
    return env


def _pip_settings() -> dict[str, str]:
    listing = [str(TOOLS / "bin" / "python"), "-m", "pip", "config", "list"]
    output = subprocess.run(listing, capture_output=True, text=True, check=True).stdout
    lines = [line.partition("=") for line in output.splitlines()]
    lines.sort(key=lambda line: line[0].startswith(":env:"))  # variables beat files
    return {name.rpartition(".")[2]: value.strip("'\"").replace("\\n", " ") for name, _, value in lines}


def _lock(options: list[str]) -> None:
    with _alone():
        uv, env = _uv(), uv_environment()
        env.pop("UV_INDEX", None)  # a lock is made from one index, so that its hashes hold everywhere
        env.pop("UV_FIND_LINKS", None)
        for name, sources in GROUPS.items():
            _say(f"locking requirements/{name}")
            command = [uv, "pip", "compile", "--quiet", "--universal", "--python-version", "3.11", "--generate-hashes"]
            command += ["--no-emit-index-url", "--custom-compile-command", "make lock", *options, *sources]
            _run([*command, "--output-file", f"requirements/{name}"], env)


def _say(text: str) -> None:
    print(f"setup: {text}", flush=True)


def _run(command: list[str], env: dict[str, str]) -> None:
    done = subprocess.run(command, cwd=ROOT, env=env, stdin=subprocess.DEVNULL, check=False)
    if done.returncode:
        raise SystemExit(f"setup: this failed with exit code {done.returncode}: {' '.join(command)}")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
