"""nginx in front of servers: the Debian package, with its files in a folder of the test."""

import shutil
import socket
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from tests.support.patience import stretched

_SETTINGS = """
daemon off;
user root;
worker_processes 1;
pid {folder}/pid;
error_log {folder}/error.log warn;
events {{ worker_connections 2048; }}
http {{
    access_log off;
    client_max_body_size 300m;
    client_body_temp_path {folder}/body;
    proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
    upstream servers {{
{servers}
        keepalive 32;
    }}
    upstream makers {{
{makers}
        keepalive 32;
    }}
    map "$request_method $uri" $chosen {{
        default servers;
        "~^POST .*/(sessions|tasks|workflow-executions)$" makers;
    }}
    map $http_upgrade $connection_upgrade {{ default upgrade; '' ''; }}
    server {{
        listen 127.0.0.1:{port};
        location / {{
            proxy_pass http://$chosen;
            proxy_http_version 1.1;
            proxy_set_header Host $http_host;
            proxy_set_header Upgrade $http_upgrade;
            proxy_set_header Connection $connection_upgrade;
            proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for;
            proxy_connect_timeout 2s;
            proxy_read_timeout 60s;
            proxy_buffering off;
            proxy_request_buffering off;
        }}
    }}
}}
"""


@contextmanager
def running_nginx(folder: Path, servers: Sequence[str], makers: Sequence[str] | None = None) -> Iterator[str]:
    """The address of one in front of these (`host:port` each), as long as the block runs.

    `makers` get what makes sessions, and the others all the rest.
    """
    program = shutil.which("nginx", path="/usr/sbin:/usr/bin:/usr/local/sbin:/usr/local/bin")
    if program is None:
        pytest.fail("nginx is not installed: install the package nginx")
    folder.mkdir(parents=True, exist_ok=True)
    port = free_port()
    settings = folder / "nginx.conf"
    groups = {"servers": _lines(servers), "makers": _lines(makers or servers)}
    settings.write_text(_SETTINGS.format(folder=folder, port=port, **groups))
    command = [program, "-c", str(settings), "-e", str(folder / "error.log")]
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        deadline = time.monotonic() + stretched(30)
        while not _answers(port):
            assert process.poll() is None, f"nginx ended: {(folder / 'error.log').read_text()[-2000:]}"
            assert time.monotonic() < deadline, "nginx does not answer"
            time.sleep(0.02)
        yield f"http://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait()


def _lines(servers: Sequence[str]) -> str:
    return "\n".join(f"        server {server} max_fails=1 fail_timeout=1s;" for server in servers)


def _answers(port: int) -> bool:
    with suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
        return True
    return False


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
