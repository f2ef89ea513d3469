"""A real daemon of ssh on the loopback."""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.support.nginx import free_port
from tests.support.patience import wait_until


@contextmanager
def sshd(folder: Path) -> Iterator[tuple[int, Path]]:
    """A daemon that a key logs in to: its port, and the key."""
    folder.mkdir()
    for name in ("host", "user"):
        key = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(folder / name)]
        subprocess.run(key, check=True, stdin=subprocess.DEVNULL)
    port = free_port()
    Path("/run/sshd").mkdir(exist_ok=True)
    config = folder / "config"
    config.write_text(
        f"ListenAddress 127.0.0.1:{port}\nHostKey {folder}/host\nAuthorizedKeysFile {folder}/user.pub\n"
        f"StrictModes no\nUsePAM no\nPidFile none\nPermitRootLogin yes\n"
    )
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(["/usr/sbin/sshd", "-D", "-e", "-f", str(config)], env={}, stderr=log)
    try:
        wait_until(lambda: b"listening" in (folder / "log").read_bytes(), "sshd listens")
        yield port, folder / "user"
    finally:
        process.terminate()
        process.wait(30)
