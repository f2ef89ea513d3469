"""`ostler agents conform` and `record`: the suite as people run it."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from ostler.agents import ADAPTERS
from ostler.conformance.behaviours import BEHAVIOURS, BY_ID
from ostler.conformance.suite import play
from tests.conformance.replay import ReplayStage
from tests.support.recorded import read
from tests.support.serving import OSTLER, clean_env

TINY = Path(__file__).parents[1] / "support" / "programs" / "tiny_agent.py"
MOCK = next(adapter for adapter in ADAPTERS if adapter.info.id == "mock")
Agents = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def agents(tmp_path: Path) -> Agents:
    """Runs `ostler agents` to its end, on a machine whose settings know the tiny agent."""
    config = tmp_path / "config.toml"
    config.write_text(f"[agents.tiny]\ncommand = {json.dumps([sys.executable, str(TINY)])}\n")
    env = clean_env(tmp_path / "home", {"OSTLER_CONFIG": str(config)})

    def run(*arguments: str) -> "subprocess.CompletedProcess[str]":
        command = [*OSTLER, "agents", *arguments]
        return subprocess.run(command, env=env, cwd=tmp_path, capture_output=True, text=True, timeout=110, check=False)

    return run


def verdicts(output: str) -> dict[str, str]:
    """Behaviour -> verdict, from the lines for people."""
    words = {"passes": "passes", "fails": "fails", "does not claim it": "unclaimed"}
    lines = [line for line in output.splitlines() if line.startswith(tuple(words))]
    found = [(line[:17].strip(), line[19:].split()[0]) for line in lines]
    return {behaviour: words[word] for word, behaviour in found}


def test_the_mock_agent_conforms(agents: Agents) -> None:
    done = agents("conform", "mock", "--jobs", "4")
    assert (done.returncode, done.stderr) == (0, "")
    unclaimed = {"mcp", "subagent", "error.recovers"}
    assert verdicts(done.stdout) == {
        behaviour.id: "unclaimed" if behaviour.id in unclaimed else "passes" for behaviour in BEHAVIOURS
    }
    assert done.stdout.splitlines()[-1] == f"mock: {len(BEHAVIOURS) - 3} pass, 0 fail, 3 are not claimed."


def test_an_agent_of_the_settings_is_told_what_it_does_and_what_it_does_not(agents: Agents) -> None:
    chosen = ("text", "turns", "deltas", "tool.result", "permission.allow", "permission.reject", "mcp", "image")
    done = agents("conform", "tiny", "--jobs", "4", *(word for name in chosen for word in ("--only", name)))
    assert done.returncode == 1
    expected = dict.fromkeys(chosen, "passes") | {"mcp": "fails", "image": "unclaimed"}
    assert verdicts(done.stdout) == expected
    assert "the answer of the MCP server arrived nowhere" in done.stdout


def test_a_command_on_the_command_line_makes_an_agent_too(agents: Agents) -> None:
    done = agents("conform", "other", "--command", f"{sys.executable} {TINY}", "--only", "text", "--json")
    found = json.loads(done.stdout)
    assert (done.returncode, found["agent"], found["passes"], found["fails"]) == (0, "other", 1, 0)
    assert [(result["behaviour"], result["verdict"]) for result in found["results"]] == [("text", "passes")]


def test_an_agent_that_refuses_the_handshake_fails_at_once_with_its_own_words(agents: Agents) -> None:
    done = agents("conform", "other", "--command", f"{sys.executable} {TINY} stranger", "--only", "text")
    assert done.returncode == 1
    assert verdicts(done.stdout) == {"text": "fails"}
    assert "Agent 'other' did not start: it refused to start: I do not know you." in done.stdout


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("nobody",), "There is no agent 'nobody'. Known agents: mock,"),
        (("mock", "--only", "dance"), "'dance' is no behaviour. Possible: text,"),
        (("mock", "--env", "X"), "'X' is not NAME=VALUE."),
        (("other", "--command", "no-such-program-77"), "Agent 'other' is not installed"),
        (("other", "--command", "'"), "cannot be read as a command"),
    ],
)
def test_what_makes_no_sense_is_said_in_one_line(agents: Agents, arguments: tuple[str, ...], said: str) -> None:
    done = agents("conform", *arguments)
    assert done.returncode != 0
    assert said in done.stderr
    assert len(done.stderr.splitlines()) == 1


async def test_recordings_of_an_agent_can_be_played_without_it(agents: Agents, tmp_path: Path) -> None:
    chosen = ("text", "tool.result", "permission.reject", "interrupt.tool", "resume")
    done = agents("record", "mock", "--out", "new", *(word for name in chosen for word in ("--only", name)))
    assert done.returncode == 0
    recordings = [read("mock", path) for path in sorted((tmp_path / "new").glob("*.jsonl"))]
    assert sorted(recording.case for recording in recordings) == sorted(chosen)
    assert all(str(tmp_path) not in str(recording.lines) for recording in recordings)
    reasons = [
        await play(BY_ID[recording.case], ReplayStage(MOCK, recording, tmp_path, patience=10))
        for recording in recordings
    ]
    assert reasons == [None] * len(chosen)


def test_what_fails_leaves_no_recording(agents: Agents, tmp_path: Path) -> None:
    done = agents("record", "tiny", "--out", "new", "--only", "mcp", "--only", "text")
    assert done.returncode == 1
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["text.jsonl"]


ONE_SHOT = """\
import json, sys, os, urllib.request
words = sys.argv[1:]
assert words[:5] == ["--print", "--mode", "json", "--no-session", "--no-extensions"], words
assert os.environ["HOME"] != sys.argv[0]
home = os.environ["PI_CODING_AGENT_DIR"]
provider = json.load(open(home + "/models.json"))["providers"]["ostler"]
body = {"model": "scripted-large", "messages": [{"role": "user", "content": words[-1]}]}
request = urllib.request.Request(provider["baseUrl"] + "/chat/completions", json.dumps(body).encode())
answer = json.load(urllib.request.urlopen(request))["choices"][0]["message"]["content"]
print(json.dumps({"type": "agent_start"}))
print(json.dumps({"type": "message_end", "text": answer}))
"""


def test_one_prompt_tells_whether_the_program_itself_works(agents: Agents, tmp_path: Path) -> None:
    good, bad = tmp_path / "good.py", tmp_path / "bad.py"
    good.write_text(ONE_SHOT)
    bad.write_text("import sys; sys.exit('no such option: --print')")
    done = agents("one-shot", "pi", "--command", f"{sys.executable} {good}")
    assert (done.returncode, done.stderr) == (0, "")
    assert "ended with 0, with what the model said." in done.stdout
    done = agents("one-shot", "pi", "--command", f"{sys.executable} {bad}", "--json")
    found = json.loads(done.stdout)
    assert (done.returncode, found["works"], found["exit_code"]) == (1, False, 1)
    assert found["stderr"] == "no such option: --print"


def test_one_prompt_is_refused_for_agents_that_have_no_such_form(agents: Agents) -> None:
    done = agents("one-shot", "mock")
    assert (done.returncode, done.stdout) == (1, "")
    assert "Try `ostler agents conform mock --only text`." in done.stderr
