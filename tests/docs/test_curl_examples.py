"""The `curl` examples of the documentation are answered, as they are printed.

A `sh` block with `curl` is run command by command. One that streams is over when it has shown the first event.
"""

import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tests.docs.pages import Block, blocks, name, pages
from tests.support.patience import stretched
from tests.support.serving import RunningServer, clean_env, running_server
from tests.support.talk import Talk

ADDRESS = "http://127.0.0.1:2468"
EXEMPT = {
    "docs/guides/run-a-cluster.md": "it talks to two servers, each on a machine of its own",
    "docs/guides/own-agent.md": "it needs a model; test_own_agent_examples.py runs it with one",
}
ASKING = "mock: permission go on\nmock: question Tea or coffee? | tea | coffee\nmock: wait 600"
ASKS = (("PERMISSION", "permission.requested", "permission_id"), ("QUESTION", "question.requested", "question_id"))


def _with_curl(page: Path) -> list[Block]:
    return [block for block in blocks(page) if block.language == "sh" and "curl " in block.body]


def _commands(block: Block) -> Iterator[str]:
    text = ""
    for line in block.body.splitlines():
        text += f"{line}\n"
        if not line.endswith("\\") and _is_whole(text):
            yield text
            text = ""
    assert not text, f"this is no whole command: {text}"


def _is_whole(text: str) -> bool:
    try:
        shlex.split(text, comments=True)
    except ValueError:
        return False
    return True


def _run(command: str, env: dict[str, str]) -> None:
    done = subprocess.run(
        ["sh", "-c", command.replace("curl ", "curl -sS --fail-with-body ")],
        env=env,
        text=True,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        timeout=stretched(60),
        check=False,
    )
    assert done.returncode == 0, f"{command}\n{done.stdout}"


def _watch(command: str, env: dict[str, str]) -> None:
    argv = ["sh", "-c", f"exec {command.replace('curl ', 'curl -sS --fail-with-body ')}"]
    with subprocess.Popen(argv, env=env, text=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE) as watching:
        assert watching.stdout is not None
        lines = []
        for line in watching.stdout:
            lines.append(line)
            if line.startswith("data:"):
                break
        watching.kill()
    assert any(line.startswith("data:") for line in lines), f"{command}\n{''.join(lines)}"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    """A server with the default settings; the examples choose the names of their sessions."""
    with running_server(tmp_path_factory.mktemp("examples") / "state") as running:
        yield running


def _asked(talk: Talk, command: str) -> dict[str, str]:
    """The ask that the command is about, by the name that the pages have for it."""
    for variable, kind, field in ASKS:
        if f"${variable}" in command:
            return {variable: str(talk.until_type(kind)["data"][field])}
    return {}


@pytest.mark.parametrize("page", [page for page in pages() if _with_curl(page) and name(page) not in EXEMPT], ids=name)
def test_the_curl_examples_of_a_page_are_answered(page: Path, server: RunningServer, tmp_path: Path) -> None:
    path = f"{Path(sys.executable).parent}:{clean_env(tmp_path / 'home')['PATH']}"
    env = clean_env(tmp_path / "home", {"PATH": path, "OSTLER_ENDPOINT": server.url})
    with httpx.Client(base_url=f"{server.url}/api/v1", timeout=60) as api:
        talk = Talk(api)
        talk.send(ASKING)
        for command in [command for block in _with_curl(page) for command in _commands(block)]:
            known = {**env, "SESSION": talk.id, **_asked(talk, command)}
            (_watch if "curl -N" in command else _run)(command.replace(ADDRESS, server.url), known)


@pytest.mark.parametrize("page", [page for page in pages() if name(page) in EXEMPT], ids=name)
def test_what_is_exempt_has_a_curl_example(page: Path) -> None:
    assert _with_curl(page), f"{name(page)} has none any more; take it out of EXEMPT"
