"""The TypeScript SDK in Node, against a real server."""

import gzip
import json
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

from ostler import __version__
from ostler.conformance.model import ScriptedModel
from tests.support.own_agent import with_model
from tests.support.serving import RunningServer, clean_env, running_server
from tools import typescript_sdk as sdk

HERE = Path(__file__).parent
PROGRAMS = HERE / "typescript"
MOST_BYTES = 8 * 1024


@pytest.fixture(scope="module")
def node() -> Path:
    """A Node, and the SDK built."""
    return sdk.build()


def play(command: list[str], folder: Path) -> Any:
    """Run a program that prints a JSON document."""
    done = subprocess.run(
        command, env=clean_env(folder / "home"), capture_output=True, text=True, timeout=100, check=False
    )
    assert done.returncode == 0, done.stdout[-5_000:] + done.stderr[-5_000:]
    return json.loads(done.stdout)


def check_thread(told: dict[str, Any]) -> None:
    """What the thread of `typescript/thread.mjs` must tell in any runtime."""
    assert told["text"].endswith("You answered: tea\n\nDone.")
    assert told["outcome"] == "completed"
    assert [Path(file).name for file in told["files"]] == ["a.md"]
    assert len(told["asked"]) == 2
    assert (told["again"], told["third"]) == ("Twice", "Thrice")
    assert {"turn.started", "item.delta", "permission.requested", "file.changed", "turn.ended"} <= set(told["types"])
    assert told["heard"], "a listener hears all until it is taken away"
    assert told["silent"], "a listener that was taken away hears nothing more"
    assert told["content"] == "hello"
    assert told["missing"] == [404, "session_not_found"]
    assert told["sequences"] == list(range(1, told["last"] + 1)), "streams that break lose and repeat nothing"
    assert ["client", "user_message_chunk"] in told["acp"]
    assert ["agent", "agent_thought_chunk"] in told["acp"]
    assert told["acpSequences"] == sorted(told["acpSequences"])
    assert told["acpLast"] == 0, "it ends with the session, also when that was over before"
    assert told["chosen"] == ["turn.ended"] * 3, "what was asked for comes, and ends with the session"
    assert told["raw"] > 0
    assert "mock" in told["agents"]


def test_a_thread_through_the_sdk_in_node(node: Path, server: RunningServer, tmp_path: Path) -> None:
    place = (sdk.DIST / "index.js").as_uri()
    check_thread(play([str(node), str(PROGRAMS / "node.mjs"), place, server.url], tmp_path))


def test_a_server_of_another_version_hears_which_one_the_sdk_is_of(node: Path, tmp_path: Path) -> None:
    place = (sdk.DIST / "index.js").as_uri()
    told = play([str(node), str(PROGRAMS / "versions.mjs"), place], tmp_path)
    manifest = json.loads((sdk.SDK / "package.json").read_text())
    assert told == {"agent": f"ostler-js/{__version__}", "message": "There is none. Upgrade."}
    assert manifest["version"] == __version__


def test_acp_events_of_broken_streams_are_those_of_whole_ones(
    node: Path, server: RunningServer, tmp_path: Path
) -> None:
    program = PROGRAMS / "acp.mjs"
    told = play([str(node), str(program), (sdk.DIST / "index.js").as_uri(), server.url], tmp_path)
    assert told["broken"] == told["whole"]
    assert len(told["whole"]) > 20


def test_nothing_that_a_stranger_does_is_lost_in_silence(node: Path, server: RunningServer, tmp_path: Path) -> None:
    program = PROGRAMS / "surprises.mjs"
    told = play([str(node), str(program), (sdk.DIST / "index.js").as_uri(), server.url], tmp_path)
    assert told == {
        "told": [True, 1],
        "lines": "No more events come, for want of an onError: RangeError: lost",
        "few": 3,
        "readers": [True] * 5,
        "signals": [0, 0, "TimeoutError"],
        "nobody": "Cannot reach http://127.0.0.1:9. Does the server run?",
        "page": [404, "not_found"],
        "html": f"{server.url} answers with a page. Is it an Ostler server?",
        "strange": True,
    }


def test_everything_public_has_a_sentence_and_nothing_is_any(node: Path) -> None:
    inner = {"schema.d.ts", "sse.d.ts"}
    declared = {path.name: path.read_text() for path in sdk.DIST.glob("*.d.ts") if path.name not in inner}
    assert [name for name, text in declared.items() if re.search(r"\bany\b", _code(text))] == []
    assert {name: found for name, text in declared.items() if (found := _bare(name, text))} == {}


def _code(text: str) -> str:
    return re.sub(r"/\*.*?\*/|//[^\n]*", "", text, flags=re.DOTALL)


def _bare(name: str, text: str) -> list[str]:
    """Exported names, and members of classes and interfaces, that no comment stands above."""
    lines = text.splitlines()
    named = re.compile(
        r"(export (declare )?(class|interface|type|function|const) \w+|    (readonly |static )?(get )?[\w]+[?]?[:(<])"
    )
    skipped = re.compile(r"    " if name == "types.d.ts" else r"    (constructor|private)\b|export type \*")
    return [
        line
        for before, line in zip(["", *lines], lines, strict=False)
        if named.match(line) and not skipped.match(line) and not before.rstrip().endswith("*/")
    ]


def test_tools_of_the_client_are_functions(node: Path, tmp_path: Path) -> None:
    with ScriptedModel() as model, running_server(tmp_path / "state", env=with_model(model)) as running:
        program = [str(node), str(PROGRAMS / "tools.mjs"), (sdk.DIST / "index.js").as_uri(), running.url]
        told = play(program, tmp_path)
    assert '{"town":"Ulm","degrees":4}' in told["given"]
    assert "RangeError: no such town" in told["failed"]
    assert told["missing"] == "weather"


def test_the_core_is_small(node: Path, tmp_path: Path) -> None:
    out = tmp_path / "core.js"
    sdk.run(node, "rolldown/bin/cli.mjs", "dist/index.js", "--file", str(out), "--minify", "--format", "esm")
    assert len(gzip.compress(out.read_bytes(), 9)) <= MOST_BYTES


def test_the_package_says_what_is_in_it(node: Path) -> None:
    manifest = json.loads((sdk.SDK / "package.json").read_text())
    assert "dependencies" not in manifest
    sdk.run(node, "prettier/bin/prettier.cjs", "--check", "--log-level", "warn", ".")
