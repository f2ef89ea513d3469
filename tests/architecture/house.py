"""The rules of the house as data, and the source files they are about."""

import ast
import subprocess
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "src"

LAYERS: dict[str, tuple[str, ...]] = {
    "wire": (),
    "base": ("wire",),
    "link": ("wire", "base"),
    "agents": ("wire", "base"),
    "agent": ("wire", "base"),
    "programs": ("wire", "base"),
    "client": ("wire", "base"),
    "runner": ("wire", "base", "link", "agents"),
    "conformance": ("wire", "base", "link", "agents", "runner"),
    "server": ("wire", "base", "link"),
    "cli": ("client", "wire", "base"),
    "stopping": ("base",),
    "machine": ("wire", "base", "link", "agents", "runner"),
    "app": ("wire", "base", "link", "agents", "runner", "server", "machine", "stopping"),
    "runner_app": ("wire", "base", "link", "runner", "machine", "stopping"),
    "__main__": ("cli",),
}
"""Which parts a part of `ostler` may import; itself and the version in `ostler` are always allowed."""

FLOORS: dict[str, tuple[str, ...]] = {
    "ostler.runner.processes": (),
    "ostler.runner.file_trees": ("ostler.runner.processes",),
    "ostler.runner.installs": (
        "ostler.runner.starting",
        "ostler.runner.runtimes",
        "ostler.runner.file_trees",
        "ostler.runner.processes",
    ),
    "ostler.runner.imports": (),
    "ostler.runner.workspaces": ("ostler.runner.file_trees", "ostler.runner.processes"),
    "ostler.runner.delivery": ("ostler.runner.workspaces",),
    "ostler.runner.runtimes": ("ostler.runner.workspaces", "ostler.runner.processes"),
    "ostler.runner.starting": ("ostler.runner.runtimes", "ostler.runner.processes"),
    "ostler.runner.commands": ("ostler.runner.starting", "ostler.runner.runtimes", "ostler.runner.processes"),
    "ostler.runner.logins": ("ostler.runner.starting", "ostler.runner.runtimes", "ostler.runner.processes"),
    "ostler.runner.provisioners": ("ostler.runner.runtimes",),
    "ostler.runner.execution": ("ostler.runner.starting", "ostler.runner.runtimes", "ostler.runner.processes"),
    "ostler.server.auth": ("ostler.server.store",),
    "ostler.server.audit": ("ostler.server.store",),
    "ostler.server.quotas": ("ostler.server.auth", "ostler.server.store"),
    "ostler.server.store": (),
    "ostler.server.runners": ("ostler.server.store",),
    "ostler.server.search": ("ostler.server.store",),
    "ostler.server.prompts": ("ostler.server.store",),
    "ostler.server.templates": ("ostler.server.store",),
    "ostler.server.schedules": (
        "ostler.server.engine",
        "ostler.server.runners",
        "ostler.server.sessions",
        "ostler.server.store",
        "ostler.server.tasks",
        "ostler.server.templates",
    ),
    "ostler.server.triggers": (
        "ostler.server.engine",
        "ostler.server.runners",
        "ostler.server.schedules",
        "ostler.server.sessions",
        "ostler.server.store",
        "ostler.server.tasks",
        "ostler.server.templates",
    ),
    "ostler.server.webhooks": ("ostler.server.store",),
    "ostler.server.engine": ("ostler.server.store",),
    "ostler.server.objects": (),
    "ostler.server.sessions": (
        "ostler.server.objects",
        "ostler.server.quotas",
        "ostler.server.runners",
        "ostler.server.store",
    ),
    "ostler.server.pools": ("ostler.server.runners", "ostler.server.sessions", "ostler.server.store"),
    "ostler.server.fleets": ("ostler.server.sessions", "ostler.server.store"),
    "ostler.server.dialects": ("ostler.server.sessions", "ostler.server.store", "ostler.server.templates"),
    "ostler.server.tasks": (
        "ostler.server.engine",
        "ostler.server.objects",
        "ostler.server.sessions",
        "ostler.server.runners",
        "ostler.server.store",
        "ostler.server.templates",
    ),
    "ostler.server.api": (
        "ostler.server.audit",
        "ostler.server.auth",
        "ostler.server.dialects",
        "ostler.server.fleets",
        "ostler.server.tasks",
        "ostler.server.sessions",
        "ostler.server.runners",
        "ostler.server.engine",
        "ostler.server.prompts",
        "ostler.server.quotas",
        "ostler.server.schedules",
        "ostler.server.templates",
        "ostler.server.triggers",
        "ostler.server.webhooks",
        "ostler.server.search",
        "ostler.server.store",
    ),
}
"""Which of its sibling folders a folder inside a part may import."""

STOREYS: tuple[tuple[str, ...], ...] = (
    ("log", "answers", "attachments", "secrets", "work.restoring", "runners.waiting"),
    (
        "settings",
        "folders",
        "ownership",
        "admission",
        "drafts",
        "elsewhere",
        "creation",
        "proposing",
        "policy",
        "session",
    ),
    ("agent", "asks", "continuing", "handoff", "work", "turns", "lifecycle"),
    ("live", "registry"),
    ("new_sessions", "service"),
    ("runners",),
)
"""The modules of `ostler.server.sessions` from the ground up: its log, one session, its parts, all of them, runners.

Each imports only its own storey and those below.
"""

HIDDEN: dict[str, tuple[str, ...]] = {
    "ostler.server.store.sqlite": ("ostler.server.store.opening", "ostler.server.store.copying"),
    "ostler.server.store.postgres": (
        "ostler.server.store.opening",
        "ostler.server.store.copying",
        "ostler.server.store.checking",
    ),
    "ostler.server.store.sql": ("ostler.server.store.sqlite", "ostler.server.store.postgres"),
}
"""Folders that nobody but themselves and these modules may import."""

SQL: tuple[str, ...] = (
    "ostler.server.store.sqlite.",
    "ostler.server.store.postgres.",
    "ostler.cli.commands.doctor",  # looks at a database that no server may have open
    "ostler.runner.runtimes.home_copy",  # copies the databases of agents
    "ostler.runner.imports.opencode",  # reads the database of an agent
)
"""Where the drivers of databases are known."""

PRIVATE_TO_SESSIONS = frozenset({"log", "feed", "spec"})
"""Attributes of a session that only its own folder uses: what others need of it has a name of its own."""

READERS_OF_SESSIONS = ("ostler.server.api.", "ostler.server.dialects.", "ostler.server.tasks.")

WITHOUT_DISK = ("ostler.server.sessions", "ostler.server.tasks", "ostler.server.dialects", "ostler.server.api")
"""What is done to the disk of a runner is asked of the runner: it may be another machine's."""
DISK = frozenset(
    {"os", "shutil", "tempfile", "glob", "io", "pathlib.Path", "ostler.base.private", "ostler.base.paths", "open"}
)
"""What a module would touch a disk with; `PurePath` only knows names."""
OWN_DISK: dict[str, str] = {
    "ostler.server.api.streams.outflow": "a large answer waits on the server's disk until it is sent",
    "ostler.server.api.ui": "the web UI ships with the server",
}
"""Modules of these folders that have data of the server's own on its disk, and which; this list only shrinks."""

STARTS = "ostler.runner.starting."
"""What starts the programs of others: agents, spares, setup commands, logins and probes."""
HELPERS: dict[str, str] = {
    "ostler.runner.file_trees.commands": "tools of file systems, such as mount",
    "ostler.runner.file_trees.unpacking": "our own program that unpacks archives",
    "ostler.runner.installs.toolbox": "the tools that install agents: npm, uv, pip",
    "ostler.runner.processes.helpers": "our own program that ends helpers after us",
    "ostler.runner.processes.nursery": "our own program that makes keepers",
    "ostler.runner.processes.nursery_process": "forks keepers of itself",
    "ostler.runner.processes.pipes": "how a keeper starts what it was told to",
    "ostler.runner.runtimes.container_engines": "docker and podman themselves",
    "ostler.runner.workspaces.git": "git",
    "ostler.runner.workspaces.providers.holders": "our own program that holds the mounts of a workspace",
}
"""Other modules that start processes, and which: tools and programs of our own, never one that a client chose."""

EXCEPTIONS: dict[tuple[str, str], str] = {}
"""(module, imported module) -> why; this list only shrinks."""

LATE_IMPORTS: dict[tuple[str, str], str] = {
    (
        "ostler.cli.commands.conform",
        "ostler.conformance.command",
    ): "only two commands need the suite, which needs the runner",
    (
        "ostler.cli.commands.credentials",
        "ostler.machine",
    ): "it looks at this machine itself, where the adapters know what to look for",
    (
        "ostler.cli.commands.database",
        "ostler.server.store.copying",
    ): "it moves a store while no server runs",
    (
        "ostler.cli.commands.doctor.engine",
        "ostler.server.engine.temporal.checking",
    ): "it looks whether Temporal can be used also when no server runs",
    (
        "ostler.cli.commands.doctor.objects",
        "ostler.server.objects.opening",
    ): "it looks whether the bucket can be used also when no server runs",
    (
        "ostler.cli.commands.doctor.shared_database",
        "ostler.server.store.checking",
    ): "it looks at what servers share also when none of them runs",
    (
        "ostler.cli.commands.doctor.keepers",
        "ostler.runner.processes.survey",
    ): "it looks at agents also when no server runs",
    ("ostler.cli.commands.runner", "ostler.runner_app"): "only this command is a runner",
    ("ostler.cli.commands.serve", "ostler.app"): "only `serve` needs the server; every other command starts without it",
}
"""Imports inside a function across the layers, each with its reason."""

STANDALONE = (
    "ostler.programs.",
    "ostler.runner.processes.keeper",
    "ostler.runner.processes.line",
    "ostler.runner.processes.nursery_process",
    "ostler.runner.processes.pipes",
    "ostler.runner.processes.spool",
    "ostler.runner.processes.tree",
    "ostler.runner.processes.watched",
)
"""Programs of their own, started without installed packages: they import the standard library and each other only."""

RETIRED: dict[str, str] = {
    "desk": "service",
    "enliven": "load",
    "handed": "delivered, sent, followed",
    "keeping": "storing, copying",
    "kept": "stored, remaining, surviving, copied",
    "moving": "running",
    "places": "paths, folders, addresses",
    "retold": "reworded, replayed",
    "said": "message, text, output, answer",
    "served": "the class that it is",
    "shelf": "installed versions, stalled readers",
    "spot": "location",
    "stand_in_the_way": "block",
    "told": "sent, reported, shown; fields, notice, reason",
    "travel": "rewind, restore, fork",
    "undone_later": "async_undone",
    "untold": "what is missing",
    "worked": "the class that it is",
}
"""Words that no name in the code has, and what to say instead; the glossary is in docs/explanation/architecture.md."""

RETIRED_ELSEWHERE: dict[str, str] = {
    "TurnNotKept": "the error `turn_not_kept` of the API",
    "kept_bases": "a setting",
    "kept_workspaces": "a setting",
    "kept_workspaces_bytes": "a setting",
    "kept_workspaces_days": "a setting",
    "memory_kept": "a field of events and of the API",
}
"""Names with a retired word that people outside know, and where from; this list only shrinks."""

MAX_METHODS = 30
"""Of a class together with its bases: a chain of bases does not make it smaller."""
MAX_FUNCTION_LINES = 60
MAX_MEDIAN_FUNCTION_LINES = 9


@cache
def tracked_files() -> tuple[Path, ...]:
    """Every file that is, or would be, committed."""
    listing = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    names = subprocess.run(listing, cwd=ROOT, capture_output=True, text=True, check=True).stdout.split("\0")
    return tuple(ROOT / name for name in sorted(set(names)) if name and (ROOT / name).is_file())


_LEAVES = (ast.Name, ast.Constant, ast.expr_context, ast.operator, ast.alias)
"""What nothing is imported in."""


@cache
def modules() -> dict[str, Path]:
    """Every module of the package by its dotted name."""
    files = sorted(SOURCE.rglob("*.py"))
    return {_module_name(file): file for file in files}


def _module_name(file: Path) -> str:
    parts = file.relative_to(SOURCE).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


@cache
def tree(file: Path) -> ast.Module:
    """The parsed file."""
    return ast.parse(file.read_text(), filename=str(file))


def part_of(module: str) -> str:
    """The part of the house a module belongs to: `ostler.server.api.app` is in `server`."""
    return [*module.split("."), ""][1]


@cache
def imports(module: str, *, late: bool) -> frozenset[str]:
    """What a module imports of ours: at its top, or (late) inside functions."""
    return frozenset(name for name, inside in _all_imports(module) if inside == late and name.split(".")[0] == "ostler")


@cache
def foreign_imports(module: str) -> frozenset[str]:
    """The top-level packages a module imports, anywhere in it."""
    return frozenset(name.split(".")[0] for name, _ in _all_imports(module))


@cache
def _all_imports(module: str) -> frozenset[tuple[str, bool]]:
    """What a module imports, and whether it does so inside a function; one walk over the file for all who ask."""
    found: set[tuple[str, bool]] = set()
    left: list[tuple[ast.AST, bool]] = [(tree(modules()[module]), False)]
    while left:
        node, inside = left.pop()
        found.update((name, inside) for name in _imported(node))
        inside = inside or isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        left += [(child, inside) for child in ast.iter_child_nodes(node) if not isinstance(child, _LEAVES)]
    return frozenset(found)


@cache
def methods(module: str, name: str) -> frozenset[str]:
    """The methods of a class with those of its bases of ours; empty if no such class is there."""
    top = tree(modules()[module])
    named = {
        alias.asname or alias.name: (node.module or "", alias.name)
        for node in top.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    found: set[str] = set()
    for each in top.body:
        if isinstance(each, ast.ClassDef) and each.name == name:
            found |= {part.name for part in each.body if isinstance(part, ast.FunctionDef | ast.AsyncFunctionDef)}
            bases = (base.value if isinstance(base, ast.Subscript) else base for base in each.bases)
            known = (named.get(base.id, (module, base.id)) for base in bases if isinstance(base, ast.Name))
            found |= {method for where, base in known if where in modules() for method in methods(where, base)}
    return frozenset(found)


def _imported(node: ast.AST) -> list[str]:
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
        found = [f"{node.module}.{alias.name}" for alias in node.names]
        return [name if name in modules() else node.module for name in found]
    if isinstance(node, ast.Call) and _name_of(node.func) == "import_module" and node.args:
        start = node.args[0].values[0] if isinstance(node.args[0], ast.JoinedStr) else node.args[0]
        return [str(start.value).rstrip(".")] if isinstance(start, ast.Constant) else []
    return []


def _name_of(function: ast.expr) -> str:
    """The last word of what is called."""
    return function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
