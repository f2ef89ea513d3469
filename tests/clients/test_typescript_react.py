"""The hooks of the TypeScript SDK in a page of React."""

import json
import shutil
import subprocess
from pathlib import Path

from tests.clients.conftest import HERE
from tests.support.patience import stretched
from tests.support.serving import RunningServer, clean_env
from tools import typescript_sdk as sdk


def test_a_page_shows_a_session_and_answers_what_it_is_asked(node: Path, server: RunningServer, tmp_path: Path) -> None:
    sdk.build()
    shutil.copytree(sdk.DIST, tmp_path / "dist")
    shutil.copy(HERE / "use_session.mjs", tmp_path)
    (tmp_path / "package.json").write_text('{"type": "module"}')
    (tmp_path / "node_modules").symlink_to(HERE / "node_modules")  # one React for the page and for the hooks
    done = subprocess.run(
        [str(node), "use_session.mjs", server.url],
        cwd=tmp_path,
        env=clean_env(tmp_path / "home"),
        capture_output=True,
        text=True,
        timeout=stretched(100),
        check=False,
    )
    assert done.returncode == 0, done.stderr
    seen = json.loads(done.stdout)
    assert (seen["outcome"], seen["asked"]) == ("completed", 1)
    assert "Hello there." in seen["shown"]
    assert seen["shown"].endswith("rests 0")
