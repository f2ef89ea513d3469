"""Commands against a running server: what they print, and which exit code they give."""

import json
import subprocess
from pathlib import Path

import pytest

from ostler.agents import ADAPTERS
from ostler.cli.lazy import COMMANDS, SECTIONS
from tests.cli.conftest import Ostler
from tests.support.patience import wait_until
from tests.support.serving import OSTLER, RunningServer, running_server

KNOWN = ", ".join(adapter.info.id for adapter in ADAPTERS)


def test_the_server_tells_its_version(ostler: Ostler) -> None:
    done = ostler("system", "version", "--json")
    assert json.loads(done.stdout)["name"] == "ostler"


def test_health_and_readiness_are_one_word_each(ostler: Ostler) -> None:
    assert ostler("system", "health").stdout == "ok\n"
    assert ostler("system", "ready").stdout.splitlines()[0].split() == ["status", "ready"]


def test_documents_are_printed_whole(ostler: Ostler) -> None:
    assert json.loads(ostler("system", "openapi").stdout)["openapi"].startswith("3.1")
    assert "$defs" in json.loads(ostler("system", "schema", "wire.json").stdout)
    assert "# TYPE" in ostler("system", "metrics").stdout


def test_the_mock_agent_is_listed_and_described(ostler: Ostler) -> None:
    assert ostler("agents", "list").stdout.splitlines()[1].startswith("mock")
    assert "mock-small" in ostler("agents", "get", "mock").stdout
    assert "plan" in ostler("agents", "modes", "mock").stdout
    assert "mock-large" in ostler("agents", "models", "mock").stdout
    assert json.loads(ostler("agents", "install", "mock", "--json").stdout)["agent"] == "mock"


def test_a_session_lives_through_all_its_verbs(ostler: Ostler, tmp_path: Path) -> None:
    made = ostler(
        "sessions", "create", "mock", "--key", "life", "--label", "team=a", "--env", "X=1", "--cwd", ".", "--json"
    )
    session = json.loads(made.stdout)
    assert (session["cwd"], session["envNames"], session["labels"]) == (str(tmp_path), ["X"], {"team": "a"})
    assert ostler("sessions", "create", "mock", "--key", "life").stdout.strip() == session["id"]
    assert "Renamed" in ostler("sessions", "update", "life", "--title", "Renamed").stdout
    assert session["id"][:14] in ostler("sessions", "list", "--label", "team=a").stdout
    assert ostler("sessions", "interrupt", "life").stdout == "No turn was running.\n"
    assert ostler("sessions", "queue", "life").stdout == "No prompts wait.\n"
    assert ostler("sessions", "clear-queue", "life").returncode == 0
    assert ostler("sessions", "pause", "life").stdout == f"{session['id']} is paused.\n"
    assert ostler("sessions", "resume", "life").stdout == f"{session['id']} is running.\n"
    assert ostler("sessions", "stop", "life").stdout == f"{session['id']} is stopped.\n"
    assert ostler("events", "stream", "life", "--json").stdout.splitlines()[-1].find("session.ended") > 0
    assert ostler("sessions", "delete", "life").returncode == 0
    assert ostler("sessions", "get", "life").returncode == 4


def test_a_session_that_waits_for_its_limit_says_so(ostler: Ostler) -> None:
    ostler("sessions", "create", "mock", "--key", "limited")
    ostler("sessions", "send", "limited", "mock: say Half of it.\nmock: limit 3600")
    waits = "waits for its limit until 20"
    wait_until(lambda: waits in ostler("sessions", "list").stdout, what="it does not wait")
    assert waits in ostler("sessions", "get", "limited").stdout
    assert waits in ostler("events", "list", "limited").stdout
    assert ostler("sessions", "go-on", "limited").stdout.endswith(" goes on.\n")
    refused = ostler("sessions", "go-on", "limited")
    assert refused.returncode != 0
    assert "does not wait for the end of a limit" in refused.stderr
    ostler("sessions", "send", "limited", "mock: limit 3600")
    wait_until(lambda: waits in ostler("sessions", "list").stdout, what="it does not wait again")
    assert ostler("sessions", "interrupt", "limited").stdout == "It does not wait any longer.\n"
    assert "limited until 20" in ostler("sessions", "list").stdout


def test_sessions_are_listed_by_short_ids_that_every_command_takes(ostler: Ostler) -> None:
    made = ostler("sessions", "create", "mock", "--title", "Mend the roof").stdout.strip()
    row = next(line for line in ostler("sessions", "list").stdout.splitlines() if "Mend the roof" in line)
    short = row.split()[0]
    assert (made.startswith(short), len(short) < 18, made in row) == (True, True, False)
    assert made in ostler("sessions", "get", short).stdout
    assert ostler("sessions", "send", short, "-", stdin="mock: permission dig").returncode == 0
    wait_until(lambda: short in ostler("asks", "list", "--session", short).stdout, what="it does not ask")
    assert ostler("sessions", "cancel", short).stdout == f"{made} is cancelled.\n"
    ostler("sessions", "create", "mock")
    several = ostler("sessions", "get", "ses_0")
    assert (several.returncode, "may be several sessions: " in several.stderr) == (1, True)
    nobody = ostler("sessions", "get", "ses_7ZZZZZZZZZ")
    assert nobody.stderr.startswith("Error: There is no session 'ses_7ZZZZZZZZZ'.")


def test_a_prompt_waits_behind_another_and_can_be_taken_back(ostler: Ostler) -> None:
    ostler("sessions", "create", "mock", "--key", "waiting")
    assert "started" in ostler("sessions", "send", "waiting", "mock: wait 60").stdout
    receipt = json.loads(ostler("sessions", "send", "waiting", "-", "--json", stdin="later").stdout)
    assert (receipt["disposition"], receipt["position"]) == ("queued", 1)
    assert "later" in ostler("sessions", "queue", "waiting").stdout
    assert ostler("sessions", "unqueue", "waiting", receipt["promptId"]).returncode == 0
    assert ostler("sessions", "cancel", "waiting").returncode == 0
    assert "interrupted" in ostler("sessions", "turns", "waiting").stdout


def test_a_transcript_logs_and_events_can_be_read(ostler: Ostler) -> None:
    assert ostler("run", "mock", "mock: say Hello there.", "--key", "read").returncode == 0
    assert "assistant  Hello there." in ostler("sessions", "messages", "read").stdout
    assert "session is running" in ostler("events", "logs", "read").stdout
    page = ostler("events", "list", "read", "--json", "--limit", "2")
    found = json.loads(page.stdout)
    assert ([event["sequence"] for event in found["events"]], found["hasMore"]) == ([1, 2], True)
    assert ostler("events", "list", "read", "--limit", "2").stdout.splitlines()[2] == "More with --offset 2."
    listed = ostler("events", "list", "read").stdout
    assert ("turn.ended" in listed, "assistant: Hello there." in listed, "itm_" in listed) == (True, True, False)
    assert "session.started" in ostler("events", "project", "--limit", "1").stdout


def test_asks_are_listed_and_answered(ostler: Ostler) -> None:
    session = ostler("sessions", "create", "mock", "--key", "asks").stdout.strip()
    ostler("sessions", "send", "asks", "mock: permission dig\nmock: question Tea? | yes | no\nmock: question More?")
    for kind, command in (
        ("permission", ("permission", "{}", "once")),
        ("question", ("answer", "{}", "yes")),
        ("question", ("reject", "{}")),
    ):
        ask = _open_ask(ostler, session)
        assert ask["kind"] == kind
        verb, *rest = (piece.format(ask["askId"]) for piece in command)
        assert ostler("asks", verb, session, *rest).returncode == 0
    again = ostler("asks", "permission", session, "per_none", "once")
    assert (again.returncode, again.stderr.count("\n")) == (4, 1)


def _open_ask(ostler: Ostler, session: str) -> dict[str, str]:
    for _ in range(100):
        found = json.loads(ostler("asks", "list", "--session", session, "--json").stdout)["items"]
        if found:
            ask: dict[str, str] = found[0]
            return ask
    raise AssertionError("no ask appeared")


@pytest.mark.parametrize(
    ("arguments", "code", "line"),
    [
        (
            ("sessions", "get", "nobody"),
            4,
            "Error: There is no session 'nobody'. List sessions with `ostler sessions list`.",
        ),
        (
            ("task", "--agent", "mock", "--repo", "https://forge.example.org/shop.git", "--deliver", "pr", "Do it"),
            1,
            "Error: --repo-token: a pull request needs a token for the forge. Give one, or choose a branch.",
        ),
        (("sessions", "get", ".."), 2, "Error: '..' cannot be an id."),
        (("run", "nobody", "hi"), 4, f"Error: There is no agent 'nobody'. Known agents: {KNOWN}."),
        (("run", "mock", " "), 2, "Error: The prompt is empty. Try `ostler run --help`."),
        (("run", "mock"), 2, "Error: Missing argument 'PROMPT'. Try `ostler run --help`."),
        (("sessions", "lst"), 2, "Error: No such command 'lst'. Did you mean 'list'? Try `ostler sessions --help`."),
        (
            ("run", "mock", "x", "--env", "A"),
            2,
            "Error: Invalid value for '--env': 'A' is not NAME=VALUE. Try `ostler run --help`.",
        ),
        (
            ("--endpoint", "ftp://x", "system", "health"),
            2,
            "Error: 'ftp://x' is not an address: it must begin with http:// or https://. "
            "Give one such as http://127.0.0.1:2468.",
        ),
        (("--endpoint", "http://127.0.0.1:99999", "whoami"), 2, None),
        (("--endpoint", "http://127.0.0.1:port", "run", "mock", "hi"), 2, None),
        (("--endpoint", "http://[::1", "events", "stream", "x"), 2, None),
        (("--endpoint", ":2468", "whoami"), 2, None),
        (("--endpoint", "http://127.0.0.1:2468/\nX: y", "attach", "x"), 2, None),
        (("run", "mock", "hi", "--model"), 2, "Error: Option '--model' requires an argument. Try `ostler --help`."),
        (("serve", "--port"), 2, "Error: Option '--port' requires an argument. Try `ostler --help`."),
        (("serve", "--port", "many"), 2, None),
        (("serve", "--host", "0.0.0.0"), 2, None),
        (("serve", "--config", "missing.toml"), 2, None),
        (("run", "mock", "hi", "--model", "huge"), 1, None),
    ],
)
def test_a_failure_is_one_line_and_a_code(
    ostler: Ostler, arguments: tuple[str, ...], code: int, line: str | None
) -> None:
    done = ostler(*arguments)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (code, "", 1)
    assert done.stderr.startswith("Error: ")
    assert line is None or done.stderr == line + "\n"


@pytest.mark.parametrize(
    "arguments", [("system", "health"), ("run", "mock", "hi"), ("attach", "x"), ("events", "stream", "x")]
)
def test_without_a_server_the_way_out_is_shown(ostler: Ostler, arguments: tuple[str, ...]) -> None:
    done = ostler(*arguments, "--endpoint", "http://127.0.0.1:1")
    assert (done.returncode, done.stderr) == (
        3,
        "Error: No Ostler server answers at http://127.0.0.1:1. Start one with `ostler serve`.\n",
    )


def test_the_help_has_every_command_in_one_group(ostler: Ostler) -> None:
    assert sorted(name for names in SECTIONS.values() for name in names) == sorted(COMMANDS)
    shown = ostler("--help").stdout
    assert [line for line in shown.splitlines() if line.endswith(":")][1:] == [f"{title}:" for title in SECTIONS]


def test_a_token_is_sent_from_flag_or_variable(ostler: Ostler, tmp_path: Path) -> None:
    with running_server(tmp_path / "state", "--token", "s3cret") as guarded:
        endpoint = ("--endpoint", guarded.url)
        assert ostler(*endpoint, "agents", "list").returncode == 1
        assert ostler("agents", "list", *endpoint, "--token", "s3cret").returncode == 0
        assert ostler(*endpoint, "agents", "list", OSTLER_TOKEN="s3cret").returncode == 0


@pytest.mark.parametrize("token", ["copied\nbadly", "schlüssel", "two\twords"])
def test_a_token_that_cannot_be_sent_is_told_and_not_shown(ostler: Ostler, token: str) -> None:
    for words in (("whoami",), ("run", "mock", "hi")):
        done = ostler(*words, OSTLER_TOKEN=token)
        assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
        assert done.stderr.startswith("Error: The token has a line break")
        assert token not in done.stderr


def test_a_reader_that_leaves_early_causes_no_noise(ostler: Ostler, server: RunningServer, env: dict[str, str]) -> None:
    ostler("run", "mock", "mock: stream 5000 words max", "--key", "pipe")
    command = " ".join([*OSTLER, "events", "list", "pipe", "--limit", "1000", "|", "head", "-1"])
    done = subprocess.run(command, shell=True, env=env, capture_output=True, text=True, timeout=60, check=False)
    assert ("session.started" in done.stdout, done.stderr) == (True, "")


def test_completion_scripts_exist_for_the_usual_shells(ostler: Ostler) -> None:
    assert {shell: "_OSTLER_COMPLETE" in ostler("completion", shell).stdout for shell in ("bash", "zsh", "fish")} == {
        "bash": True,
        "zsh": True,
        "fish": True,
    }


def test_doctor_is_content_with_a_running_server(ostler: Ostler, server: RunningServer) -> None:
    done = ostler("doctor")
    assert done.returncode == 0
    assert {line.split()[0] for line in done.stdout.splitlines()} == {"ok"}
    assert "Installed agents: mock, ostler." in done.stdout


def test_doctor_finds_a_broken_database_a_taken_port_and_a_bad_folder(
    ostler: Ostler, server: RunningServer, tmp_path: Path
) -> None:
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "ostler.db").write_bytes(b"this is not a database" * 100)
    (tmp_path / "file").write_text("")
    nowhere = {"OSTLER_ENDPOINT": "http://127.0.0.1:1", "OSTLER_PORT": str(server.port)}
    broken = ostler("doctor", "--state-dir", str(tmp_path / "broken"), **nowhere)
    blocked = ostler("doctor", "--state-dir", str(tmp_path / "file" / "state"))
    assert (broken.returncode, blocked.returncode) == (1, 1)
    failures = [line for line in (broken.stdout + blocked.stdout).splitlines() if line.startswith("fail")]
    assert [line.split()[1] for line in failures] == ["Database", "Cannot", "State"]


def test_an_unexpected_error_is_one_line_too_unless_details_are_wanted(ostler: Ostler) -> None:
    words = ("sessions", "create", "mock", "--cwd", "~nobody-has-this-name/shop")
    short, long = ostler(*words), ostler("--debug", *words)
    assert (short.returncode, short.stderr.count("\n"), "ostler --debug" in short.stderr) == (1, 1, True)
    assert "Traceback" in long.stderr
