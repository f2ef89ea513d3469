"""JSON Schemas of what agents say, into schema/agents: from the types they publish, or from recordings of them.

Published types are reduced to names and kinds: no text, and nothing is required but the words that tell frames apart,
since programs leave out what their types promise. Whatever cannot be fetched keeps the file that is there.
"""

import json
import os
import subprocess
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import msgspec

from ostler.runner.installs.platforms import this_platform

ROOT = Path(__file__).resolve().parents[1]
OUT = ROOT / "schema" / "agents"
RECORDINGS = ROOT / "tests" / "fixtures" / "agents"
WORK = ROOT / ".cache" / "agent-schemas"
GENERATOR = "ts-json-schema-generator@2.9.0"
_SECONDS = 300
_PROGRAM = "agent-program"
"""What npm calls the package of a program here."""
_TAGS = ("type", "subtype", "method", "command")
_DEEPEST = 6
_MANY_KEYS = 24
"""An object with more keys than this over all recordings is a map."""
Schema = dict[str, Any]


class Types(msgspec.Struct, frozen=True, kw_only=True):
    """Types in an npm package, whose union is all that an agent says."""

    package: str
    version: str
    files: dict[str, tuple[str, ...]]
    """Path in the package -> names of types."""


class Printed(msgspec.Struct, frozen=True, kw_only=True):
    """Schemas that a program of an npm package writes itself, whose union is all that it says."""

    package: str
    version: str
    """Of the package, before the platform: 1.2.3-linux-x64."""
    program: str
    """A pattern of its path in the package."""
    words: tuple[str, ...]
    """Before the folder that it writes to."""
    files: tuple[str, ...]


PUBLISHED: dict[str, Types | Printed] = {
    "codex": Printed(
        package="@openai/codex",
        version="0.166.0",
        program="vendor/*/bin/codex",
        words=("app-server", "generate-json-schema", "--out"),
        files=("ServerNotification.json", "ServerRequest.json", "JSONRPCResponse.json", "JSONRPCError.json"),
    ),
    "opencode": Types(package="@opencode-ai/sdk", version="1.18.18", files={"dist/v2/gen/types.gen.js": ("Event",)}),
    "pi": Types(
        package="@earendil-works/pi-coding-agent",
        version="0.87.1",
        files={
            "dist/core/agent-session.js": ("AgentSessionEvent",),
            "dist/modes/rpc/rpc-types.js": ("RpcResponse", "RpcExtensionUIRequest"),
        },
    ),
}
AGENTS = ("amp", "claude-code", "codex", "copilot", "opencode", "pi")
"""Those with a language of their own; the others speak ACP, which has one schema for all."""


def heard(agent: str) -> list[Any]:
    """Every frame of an agent in its recordings."""
    return [data for path in sorted((RECORDINGS / agent).glob("*.jsonl")) for data in frames(path)]


def frames(path: Path) -> list[Any]:
    """The frames of one recording: what came from the agent, and is a document."""
    lines = [msgspec.json.decode(line) for line in path.read_bytes().splitlines()[1:]]
    found = [line["data"] for line in lines if line["dir"] in {"out", "sse"} and isinstance(line["data"], dict)]
    return [frame["event"] if set(frame) == {"event"} else frame for frame in found]  # as our bridge to a server has it


def tag_of(frame: Any) -> str:
    """What kind of frame it is, in the agent's own words."""
    return "/".join(str(frame[name]) for name in _TAGS if isinstance(frame.get(name), str)) or "response"


# From recordings


def schema_of(found: Iterable[Any]) -> Schema:
    """What frames have in common, kind by kind."""
    kinds: dict[str, list[Any]] = {}
    for frame in found:
        kinds.setdefault(tag_of(frame), []).append(frame)
    shapes = []
    for _, same in sorted(kinds.items()):
        words = {name: {"const": same[0][name]} for name in _TAGS if isinstance(same[0].get(name), str)}
        shape = _shape(same, 0)
        shapes.append({**shape, "properties": {**shape.get("properties", {}), **words}, "required": [*words]})
    return {"anyOf": shapes}


def _shape(values: Sequence[Any], depth: int) -> Schema:
    kinds = sorted({_kind(value) for value in values})
    if len(kinds) != 1:
        return {"type": kinds} if kinds else {}
    if kinds == ["object"] and depth < _DEEPEST:
        names = sorted({name for value in values for name in value})
        if len(names) > _MANY_KEYS and depth:
            return {"type": "object"}
        fields = {name: _shape([value[name] for value in values if name in value], depth + 1) for name in names}
        return {"type": "object", "properties": fields}
    if kinds == ["array"] and depth < _DEEPEST:
        return {"type": "array", "items": _shape([each for value in values for each in value], depth + 1)}
    return {"type": kinds[0]}


def _kind(value: Any) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "boolean"
        case int() | float():
            return "number"
        case str():
            return "string"
        case list():
            return "array"
        case _:
            return "object"


# From published types


def extracted(published: Types | Printed) -> Schema:
    """The schema that an agent publishes; raises OSError, SubprocessError or ValueError if it cannot be had."""
    WORK.mkdir(parents=True, exist_ok=True)
    return reduced(_typed(published) if isinstance(published, Types) else _printed(published))


def _install(*packages: str) -> None:
    options = ("--ignore-scripts", "--no-audit", "--no-fund", "--no-save", "--prefix", str(WORK))
    _run("npm", "install", *options, *packages)


def _printed(printed: Printed) -> Schema:
    _install(f"{_PROGRAM}@npm:{printed.package}@{printed.version}-{this_platform().removesuffix('-musl')}")
    program = next((WORK / "node_modules" / _PROGRAM).glob(printed.program), None)
    if program is None:
        raise FileNotFoundError(f"there is no {printed.program} in {printed.package}")
    out = WORK / "printed"
    _run(str(program), *printed.words, str(out))
    schemas = [json.loads((out / name).read_text()) for name in printed.files]
    definitions = {name: each for schema in schemas for name, each in schema.pop("definitions", {}).items()}
    return {"anyOf": schemas, "definitions": definitions}


def _typed(types: Types) -> Schema:
    _install(GENERATOR, f"{types.package}@{types.version}")
    lines = [
        f'import type {{ {", ".join(names)} }} from "./node_modules/{types.package}/{file}";'
        for file, names in types.files.items()
    ]
    union = " | ".join(name for names in types.files.values() for name in names)
    source = WORK / "frame.ts"
    source.write_text("\n".join([*lines, f"export type Frame = {union};", ""]))
    program = WORK / "node_modules" / "ts-json-schema-generator" / "bin" / "ts-json-schema-generator.js"
    options = ("--no-type-check", "--no-top-ref", "--additional-properties", "--path", str(source), "--type", "Frame")
    whole: Schema = json.loads(_run("node", str(program), *options))
    return whole


def _run(*command: str) -> str:
    """What a tool prints; its home is a folder of this checkout."""
    environ = {**os.environ, "HOME": str(WORK), "CODEX_HOME": str(WORK)}
    done = subprocess.run(command, cwd=WORK, env=environ, capture_output=True, text=True, timeout=_SECONDS, check=True)
    return done.stdout


def reduced(schema: Schema) -> Schema:
    """Names and kinds alone, and of the definitions those that are used."""
    slim: Schema = _slim(schema)
    definitions = slim.pop("definitions", {})
    used: dict[str, Any] = {}
    waiting = _names_in(slim)
    while waiting:
        name = waiting.pop()
        if name in definitions and name not in used:
            used[name] = definitions[name]
            waiting |= _names_in(definitions[name])
    return {**slim, "definitions": dict(sorted(used.items()))}


def _slim(value: Any) -> Any:
    if isinstance(value, list):
        return [_slim(each) for each in value]
    if not isinstance(value, dict):
        return value
    kept = {
        name: {field: _slim(each) for field, each in part.items()} if name in _BY_NAME else _slim(part)
        for name, part in value.items()
        if name in _KEPT
    }
    fields = value.get("properties", {})
    needed = value.get("required", ())
    tags = [name for name in needed if name in _ANSWERS or (name in _TAGS and _is_word(fields.get(name, {})))]
    return {**kept, "required": tags} if tags else kept


def _is_word(field: Schema) -> bool:
    return "const" in field or "enum" in field


_ANSWERS = ("result", "error")
"""What tells an answer from a request."""
_BY_NAME = frozenset({"properties", "definitions"})
_KEPT = _BY_NAME | {"$ref", "type", "const", "enum", "anyOf", "allOf", "oneOf", "items"}


def _names_in(value: Any) -> set[str]:
    if isinstance(value, list):
        return set().union(*map(_names_in, value))
    if not isinstance(value, dict):
        return set()
    own = {unquote(value["$ref"].rpartition("/")[2])} if isinstance(value.get("$ref"), str) else set()
    return own.union(*map(_names_in, value.values()))


# Into files


def written(agent: str) -> str:
    """Write the schema of an agent; says where it is from."""
    types = PUBLISHED.get(agent)
    file = OUT / f"{agent}.json"
    source, schema = "its recordings", None
    if types is not None:
        try:
            source, schema = f"{types.package} {types.version}", extracted(types)
        except (OSError, subprocess.SubprocessError, ValueError) as error:
            if file.is_file():
                return f"{agent}: {types.package} {types.version} could not be read ({error}); {file.name} stays"
    if schema is None:
        schema = schema_of(heard(agent))
    whole = {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": f"Frames of {agent}",
        "x-from": source,
        **schema,
    }
    OUT.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(whole, indent=1, sort_keys=False) + "\n")
    return f"{agent}: from {source}"


def main(names: list[str]) -> int:
    """Write the schemas of the agents named, or of all."""
    if unknown := [name for name in names if name not in AGENTS]:
        print(f"'{unknown[0]}' has no frames of its own. Possible: {', '.join(AGENTS)}.", file=sys.stderr)
        return 2
    for agent in names or AGENTS:
        print(written(agent), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
