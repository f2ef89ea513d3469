"""The TypeScript examples of the documentation have the right types and run, as they are printed."""

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.docs.pages import blocks, name, pages
from tests.support.patience import stretched
from tests.support.serving import RunningServer, clean_env, running_server
from tools import typescript_sdk as sdk

ADDRESS = "http://127.0.0.1:2468"
EXAMPLES = {
    f"{page.stem}_{number}": (page, block.body)
    for page in (*pages(), sdk.SDK / "README.md")
    for number, block in enumerate(blocks(page))
    if block.language == "ts" and 'from "ostler"' in block.body
}
CONFIG = {
    "compilerOptions": {
        "strict": True,
        "module": "NodeNext",
        "target": "ES2022",
        "lib": ["ES2023", "DOM", "DOM.Iterable"],
        "types": [],
        "skipLibCheck": True,
    },
    "include": ["*.ts"],
}


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project with the package in it, and every example compiled."""
    node = sdk.build()
    folder = tmp_path_factory.mktemp("project")
    (folder / "node_modules").mkdir()
    (folder / "node_modules" / "ostler").symlink_to(sdk.SDK)
    (folder / "package.json").write_text('{"type": "module"}')
    for example, (_, body) in EXAMPLES.items():
        (folder / f"{example}.ts").write_text(body)
    (folder / "tsconfig.json").write_text(json.dumps(CONFIG))
    sdk.run(node, "typescript/bin/tsc", "--project", str(folder))
    return folder


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    """A server with the default settings."""
    with running_server(tmp_path_factory.mktemp("typescript") / "state") as running:
        yield running


@pytest.mark.parametrize("example", EXAMPLES, ids=[f"{name(page)}-{key}" for key, (page, _) in EXAMPLES.items()])
def test_an_example_does_what_it_says(example: str, project: Path, server: RunningServer) -> None:
    program = project / f"{example}.js"
    said = program.read_text()
    program.write_text(
        said.replace(ADDRESS, server.url).replace("createClient()", f'createClient({{ baseUrl: "{server.url}" }})')
    )
    done = subprocess.run(
        [str(sdk.build()), str(program)],
        cwd=project,
        env=clean_env(project / "home"),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=stretched(60),
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout, "an example shows something"
