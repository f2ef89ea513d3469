"""The programs in the SDK's guide run as they are written."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.serving import RunningServer, clean_env

GUIDE = Path(__file__).parents[2] / "docs" / "guides" / "python-sdk.md"
PROGRAMS = re.findall(
    r"^```python\n(.*?)^```$",
    GUIDE.read_text()
    + GUIDE.with_name("saved-prompts.md").read_text()
    + GUIDE.with_name("templates.md").read_text()
    + GUIDE.with_name("schedules.md").read_text()
    + GUIDE.with_name("triggers.md").read_text()
    + GUIDE.with_name("webhooks.md").read_text(),
    re.MULTILINE | re.DOTALL,
)


@pytest.mark.parametrize(
    ("program", "printed"),
    list(
        zip(
            PROGRAMS,
            [
                "Hello completed\nHello again",
                "I am the mock agent.",
                "404 session_not_found",
                "Hello Ann",
                "Hi",
                "5",
                "waiting",
                "webhook.test",
            ],
            strict=True,
        )
    ),
    ids=["run", "watch", "errors", "prompts", "templates", "schedules", "triggers", "webhooks"],
)
def test_a_program_of_the_guide_runs(server: RunningServer, tmp_path: Path, program: str, printed: str) -> None:
    ready = program.replace("http://127.0.0.1:2468", server.url)
    done = subprocess.run(
        [sys.executable, "-c", ready],
        env=clean_env(tmp_path),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stderr, printed in done.stdout) == (0, "", True)
