"""An S3 for tests: moto, on a loopback port that nobody else has."""

import atexit
import secrets
import socket
import subprocess
import sys
import time
import urllib.request
from contextlib import suppress
from functools import cache
from pathlib import Path

from tests.support.patience import stretched

CREDENTIALS = {"AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test"}


@cache
def shared_s3() -> str:
    """The address of one for all tests of this process."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    program = str(Path(sys.executable).parent / "moto_server")
    process = subprocess.Popen(
        [sys.executable, program, "-H", "127.0.0.1", "-p", str(port)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env={"PATH": "/usr/bin:/bin", **CREDENTIALS},
    )
    atexit.register(process.wait)
    atexit.register(process.kill)
    deadline = time.monotonic() + stretched(60)
    while True:
        with suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
            return f"http://127.0.0.1:{port}"
        assert process.poll() is None, "moto ended"
        assert time.monotonic() < deadline, "moto does not answer"
        time.sleep(0.05)


def new_bucket() -> str:
    """A new, empty bucket with a prefix, as `--object-store` takes it."""
    name = f"t{secrets.token_hex(6)}"
    request = urllib.request.Request(f"{shared_s3()}/{name}", method="PUT")
    urllib.request.urlopen(request, timeout=60).close()
    return f"s3://{name}/ostler"


def settings_of(bucket: str) -> dict[str, str]:
    """The settings of a server that uses it."""
    return {"object_store": bucket, "object_store_endpoint": shared_s3(), "object_store_region": "us-east-1"}
