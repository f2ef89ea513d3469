"""The guide "Run a cluster", followed step by step."""

import re
import shlex
import socket
import subprocess
from pathlib import Path

from tests.databases import shared_cluster
from tests.serving import running_server, wait_until

GUIDE = Path(__file__).parents[2] / "docs" / "guides" / "run-a-cluster.md"
TOKEN = "a-token-of-the-guide"
HOSTS = ("10.0.0.1", "10.0.0.2")


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def test_the_guide_leads_to_two_servers_that_answer_for_each_other(tmp_path: Path) -> None:
    start, use, _ = re.findall(r"```sh\n(.*?)```", GUIDE.read_text(), flags=re.DOTALL)
    database, ports = shared_cluster().new_database(), [free_port(), free_port()]

    def arguments(number: int) -> list[str]:
        host = HOSTS[number]
        text = start.replace(HOSTS[0], host).replace(f"{host}:2468", f"127.0.0.1:{ports[number]}")
        text = text.replace("postgresql://ostler:password@db.internal/ostler", database).replace(host, "127.0.0.1")
        words = shlex.split(text.replace("\\\n", " ").replace("$TOKEN", TOKEN))
        assert words[:2] == ["ostler", "serve"]
        del words[words.index("--state-dir") : words.index("--state-dir") + 2]  # the tests have their own
        return [*words[2:], "--port", str(ports[number])]

    for number in (0, 1):
        use = use.replace(f"{HOSTS[number]}:2468", f"127.0.0.1:{ports[number]}")
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
