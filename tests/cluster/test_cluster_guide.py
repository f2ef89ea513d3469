"""The guide "Run a cluster", followed step by step."""

import re
import shlex
import socket
import subprocess
from pathlib import Path

import httpx

from tests.support.databases import shared_cluster
from tests.support.hosts import started_runner
from tests.support.patience import wait_until
from tests.support.serving import running_server

GUIDE = Path(__file__).parents[2] / "docs" / "guides" / "run-a-cluster.md"
TOKEN = "a-token-of-the-guide"
HOSTS = ("10.0.0.1", "10.0.0.2")


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def without_folder(words: list[str]) -> list[str]:
    """The same arguments without a folder of this machine: every test has its own."""
    place = words.index("--state-dir")
    return words[:place] + words[place + 2 :]


def token() -> dict[str, str]:
    return {"authorization": f"Bearer {TOKEN}"}


def test_the_guide_leads_to_two_servers_that_answer_for_each_other(tmp_path: Path) -> None:
    start, _, use, join = re.findall(r"```sh\n(.*?)```", GUIDE.read_text(), flags=re.DOTALL)
    (objects := tmp_path / "objects").mkdir()
    database, ports = shared_cluster().new_database(), [free_port(), free_port()]

    def arguments(number: int) -> list[str]:
        host = HOSTS[number]
        text = start.replace(HOSTS[0], host).replace(f"{host}:2468", f"127.0.0.1:{ports[number]}")
        text = text.replace("postgresql://ostler:password@db.internal/ostler", database).replace(host, "127.0.0.1")
        text = text.replace("s3://my-bucket/ostler", f"file://{objects}")
        words = shlex.split(text.replace("\\\n", " ").replace("$TOKEN", TOKEN))
        assert words[:2] == ["ostler", "serve"]
        return [*without_folder(words[2:]), "--port", str(ports[number])]

    for number in (0, 1):
        use = use.replace(f"{HOSTS[number]}:2468", f"127.0.0.1:{ports[number]}")
        join = join.replace(f"{HOSTS[number]}:2468", f"127.0.0.1:{ports[number]}")
    create, send, read = (command.replace("\\\n", " ") for command in use.strip().split("\ncurl "))

    def run(command: str) -> str:
        line = command if command.startswith("curl ") else f"curl {command}"
        done = subprocess.run(
            ["bash", "-c", line],
            env={"TOKEN": TOKEN, "PATH": "/usr/bin:/bin"},
            capture_output=True,
            text=True,
            check=True,
        )
        return done.stdout

    with (
        running_server(tmp_path / "one" / "state", *arguments(0)),
        running_server(tmp_path / "two" / "state", *arguments(1)),
    ):
        assert '"key":"shared"' in run(create)
        assert '"promptId"' in run(send)
        wait_until(lambda: '"assistant"' in run(read), what="the second server never told what the agent said")
        assert "hello" in run(read)
        made = httpx.post(f"http://127.0.0.1:{ports[0]}/api/v1/runners/tokens", json={}, headers=token()).json()
        words = without_folder(shlex.split(join.replace("\\\n", " "))[2:])
        with started_runner(tmp_path / "far" / "runner", *words, token=made["token"]) as runner:
            runner.wait_linked()
