"""The Temporal of the tests does not outlive them."""

import os
import signal
import socket
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

from tests.support.patience import wait_until

_TESTS = """
import sys, time
from pathlib import Path
from tests.support.temporal_server import TemporalServer
server = TemporalServer(Path(sys.argv[1]))
server.start()
print(server.port, flush=True)
time.sleep(600)
"""


def test_it_ends_with_the_process_that_started_it_however_that_ends(tmp_path: Path) -> None:
    command, env = [sys.executable, "-c", _TESTS, str(tmp_path)], {"PATH": os.environ["PATH"], "HOME": str(tmp_path)}
    with subprocess.Popen(command, env=env, cwd=Path(__file__).parents[2], stdout=subprocess.PIPE) as tests:
        assert tests.stdout is not None
        port = int(tests.stdout.readline())
        assert _listens(port)
        tests.send_signal(signal.SIGKILL)
    wait_until(lambda: not _listens(port), what="Temporal is gone")


def _listens(port: int) -> bool:
    with suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
        return True
    return False
