"""`ostler` alone in a terminal that people use: a shell in tmux, with what is seen on its screen."""

import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from ostler.client import Client
from tests.support.patience import stretched, wait_until
from tests.support.serving import RunningServer

_PROMPT = "ready$ "


class Screen:
    """One shell in a tmux of its own."""

    def __init__(self, socket: Path, folder: Path, env: dict[str, str]) -> None:
        program = shutil.which("tmux")
        assert program is not None, "There is no tmux. Install the package tmux and try again."
        self._command = [program, "-S", str(socket), "-f", "/dev/null"]
        self._env = {
            **env,
            "TERM": "xterm-256color",
            "SHELL": "/bin/sh",
            "ENV": "",
            "PS1": _PROMPT,
            "LC_ALL": "C.UTF-8",
        }
        self._tmux("new-session", "-d", "-x", "100", "-y", "40", "-c", str(folder), "/bin/sh")
        self.sees(_PROMPT.strip())

    def type(self, text: str) -> None:
        """Type a line and Enter."""
        self._tmux("send-keys", "-l", text)
        self._tmux("send-keys", "Enter")

    def press(self, key: str) -> None:
        """Press one key, such as C-c."""
        self._tmux("send-keys", key)

    def clear(self) -> None:
        """Have an empty screen with a shell that waits."""
        self.type("clear")
        wait_until(lambda: self.text() == _PROMPT.strip(), what="the shell waits on an empty screen")

    def text(self) -> str:
        """What is on the screen."""
        return self._tmux("capture-pane", "-p").strip()

    def sees(self, *texts: str) -> None:
        """Wait until all of this is on the screen."""
        wait_until(lambda: all(text in self.text() for text in texts), what=f"{texts} on the screen")

    def is_back(self) -> None:
        """Wait until the shell waits for a command again."""
        wait_until(lambda: self.text().endswith(_PROMPT.strip()), what="the shell waits again")

    def end(self) -> None:
        """End this tmux and what runs in it."""
        self._tmux("kill-server")

    def _tmux(self, *words: str) -> str:
        done = subprocess.run(
            [*self._command, *words], env=self._env, capture_output=True, text=True, timeout=stretched(60), check=False
        )
        assert done.returncode == 0, done.stderr
        return done.stdout


@pytest.fixture
def screen(env: dict[str, str], tmp_path: Path) -> Iterator[Screen]:
    folder = tmp_path / "stable"
    folder.mkdir()
    with tempfile.TemporaryDirectory(prefix="tmux-", dir="/tmp") as short:  # a socket needs a short name
        shown = Screen(Path(short) / "socket", folder, {**env, "OSTLER_AGENT": "mock"})
        try:
            yield shown
        finally:
            shown.end()


def test_ostler_alone_starts_a_session_and_later_goes_on_with_it(
    screen: Screen, server: RunningServer, tmp_path: Path
) -> None:
    ostler = f"{sys.executable} -m ostler"
    screen.type(ostler)
    screen.sees("mock in", "\n>")
    screen.type("mock: say The oats are in the bin.")
    screen.sees("\nThe oats are in the bin.\n", "✓ completed")
    screen.type("mock: run sleep 600")
    screen.sees("● shell sleep 600")
    screen.press("C-c")
    screen.sees("✗ interrupted")
    screen.press("C-d")
    screen.sees("Come back with `ostler attach")
    screen.is_back()
    screen.clear()
    screen.type(ostler)
    screen.sees("Going on with")
    screen.type("mock: recall")
    screen.sees("I remember 3 user turns, this one included.")
    screen.press("C-c")
    screen.is_back()
    with Client(server.url) as client:
        (session,) = [each for each in client.sessions.list().items if each.cwd == str(tmp_path / "stable")]
        assert (session.agent.type, session.turn_count) == ("mock", 3)
        client.sessions.delete(session.id)
