"""Agents that the runner finds, installs when a session needs them, and tells about."""

import asyncio
import os
import tempfile
import threading
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from ostler.agents.adapter import Adapter, Credential
from ostler.agents.sources import Npm, OnPath
from ostler.base.errors import AgentNotInstalled, AgentStartFailed, InstallFailed, VersionNotOffered
from ostler.runner.installs.installer import Installer
from ostler.runner.installs.tested_versions import newer_hint
from ostler.runner.local import LocalRunner
from ostler.wire.agents import Installed, Model
from ostler.wire.events import LogData
from ostler.wire.parts import TextPart
from ostler.wire.providers import Provider
from ostler.wire.running import AgentSpec, Prompt
from tests.runner.test_local import LIMITS
from tests.support.installing import SCRIPT, SEARCH, PackedAdapter, begun, installer_in, npm_source, serving, tarball
from tests.support.patience import until
from tests.support.runner_parts import Desk, OfferingAdapter, Recorder

KEY = Credential(name="KEY", env=("KEY",), files=((".auth.json", "key"),))


@asynccontextmanager
async def running(
    adapter: Adapter,
    *,
    installer: Installer | None = None,
    search: Sequence[str] = (),
    environ: Mapping[str, str] | None = None,
    **fields: Any,
) -> AsyncIterator[LocalRunner]:
    environ = {"PATH": os.defpath, **(environ or {})}
    runner = LocalRunner(
        [adapter],
        folder=Path(tempfile.mkdtemp()),
        environ=environ,
        search=search,
        limits=LIMITS,
        installer=installer,
        **fields,
    )
    try:
        yield runner
    finally:
        await runner.close()


def spec_in(folder: Path, **fields: Any) -> AgentSpec:
    chosen: dict[str, Any] = {"session_id": f"ses_{folder.name}", "agent": "tiny", "start": 1, "env": {}, **fields}
    return AgentSpec(cwd=str(folder), home=str(folder / "agent-home"), permission_mode="default", **chosen)


async def said(runner: LocalRunner, spec: AgentSpec, text: str, sink: Recorder | None = None) -> str:
    """What a fresh agent says to one prompt."""
    sink = sink or Recorder()
    connection = await runner.connect(spec, sink)
    await connection.prompt(Prompt(prompt_id="p", turn_id="t", parts=(TextPart(text=f"{text}\ndone completed"),)))
    await until(lambda: sink.turns_ended() == 1)
    return "".join(sink.texts())


def logged(sink: Recorder) -> list[str]:
    return [draft.data.message for draft in sink.drafts if isinstance(draft.data, LogData)]


def program(folder: Path, name: str, text: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / name
    path.write_text(text)
    path.chmod(0o755)
    return path


async def test_the_first_session_installs_a_missing_agent_and_says_so(tmp_path: Path) -> None:
    source, sink = npm_source(tmp_path), Recorder()
    async with running(PackedAdapter(source), installer=installer_in(tmp_path)) as runner:
        await runner.register(desk := Desk())
        await runner.validate(spec_in(tmp_path))
        assert [agent.installed for agent in await runner.catalogue()] == [False]
        assert not desk.agents["tiny"].installed
        assert await said(runner, spec_in(tmp_path), "say hello", sink) == "hello"
        (agent,) = await runner.catalogue()
        await until(lambda: desk.agents["tiny"] == agent)
    spoken = f"npm installs tiny-package@{source.packages['tiny-package']}"
    assert logged(sink) == [f"Installing tiny: {spoken}", "Installed tiny 1.2.3"]
    assert (agent.installed, agent.version, agent.versions, agent.install_hint) == (True, "1.2.3", ("1.2.3",), None)
    assert str(agent.path).startswith(str(tmp_path / "agents" / "tiny" / "1.2.3"))


async def test_sessions_that_start_together_share_one_installation(tmp_path: Path) -> None:
    sinks = [Recorder() for _ in range(3)]
    async with running(PackedAdapter(npm_source(tmp_path)), installer=installer_in(tmp_path)) as runner:
        specs = [spec_in(tmp_path / str(number)) for number in range(3)]
        for spec in specs:
            Path(spec.cwd).mkdir()
        texts = await asyncio.gather(
            *(said(runner, spec, "say hi", sink) for spec, sink in zip(specs, sinks, strict=True))
        )
    assert texts == ["hi"] * 3
    assert [len(logged(sink)) for sink in sinks] == [2] * 3


async def test_without_auto_install_the_command_to_run_is_told(tmp_path: Path) -> None:
    adapter = PackedAdapter(npm_source(tmp_path))
    async with running(adapter, installer=installer_in(tmp_path), auto_install=False) as runner:
        with pytest.raises(AgentNotInstalled, match="Install it with `ostler agents install tiny`"):
            await runner.validate(spec_in(tmp_path))
        with pytest.raises(AgentNotInstalled):
            await runner.connect(spec_in(tmp_path), Recorder())
        path = f"{tmp_path}/agents/tiny/1.2.3/node_modules/tiny-package/bin/tiny"
        assert await runner.install("small", None) == Installed(agent="tiny", version="1.2.3", path=path)
        assert await said(runner, spec_in(tmp_path), "say now") == "now"


async def test_an_installation_under_way_is_shown_and_ends_with_the_runner(tmp_path: Path) -> None:
    released = threading.Event()
    with serving() as vendor:
        vendor.files = {"/latest": b"1.0"}
        vendor.files["/1.0/agent-x86"] = lambda handler: begun(handler, 99, b"half", until=released)
        async with running(PackedAdapter(vendor.source()), installer=installer_in(tmp_path)) as runner:
            asked = asyncio.create_task(runner.install("tiny", None))
            await until(lambda: "/1.0/agent-x86" in vendor.asked)
            (agent,) = await runner.catalogue()
            assert (agent.installed, agent.installing) == (False, "asking the vendor for its binary")
            asked.cancel()
            await asyncio.wait([asked])
            assert (await runner.catalogue())[0].installing is not None
            released.set()


async def test_a_failed_installation_can_be_tried_again(tmp_path: Path) -> None:
    with serving() as vendor:
        async with running(PackedAdapter(vendor.source()), installer=installer_in(tmp_path)) as runner:
            with pytest.raises(InstallFailed, match="answers 404"):
                await runner.connect(spec_in(tmp_path), Recorder())
            vendor.files = {"/latest": b"1.0", "/1.0/agent-x86": SCRIPT.encode()}
            assert await said(runner, spec_in(tmp_path), "say better") == "better"


async def test_a_program_on_the_path_is_enough_unless_another_version_is_wanted(tmp_path: Path) -> None:
    own = program(tmp_path / "bin", "tiny-agent", '#!/bin/sh\necho "tiny 0.9.1"\n')
    with serving() as vendor:
        vendor.files = {"/2.0/agent-x86": SCRIPT.encode()}
        adapter = PackedAdapter(OnPath(program="tiny-agent"), vendor.source())
        async with running(adapter, installer=installer_in(tmp_path), search=[str(own.parent)]) as runner:
            assert await runner.install("tiny", None) == Installed(agent="tiny", version="0.9.1", path=str(own))
            assert await runner.install("tiny", "0.9.1") == Installed(agent="tiny", version="0.9.1", path=str(own))
            await runner.install("tiny", "2.0")
            (agent,) = await runner.catalogue()
    assert (agent.version, agent.versions) == ("2.0", ("2.0",))
    assert vendor.asked == ["/2.0/agent-x86"]


async def test_an_agent_that_is_wanted_anew_is_installed_though_it_is_there(tmp_path: Path) -> None:
    async with running(PackedAdapter(npm_source(tmp_path)), installer=installer_in(tmp_path)) as runner:
        first = await runner.install("tiny", None)
        Path(str(first.path)).write_text("broken")
        assert await runner.install("tiny", None) == first
        assert Path(str(first.path)).read_text() == "broken"
        assert await runner.install("tiny", None, reinstall=True) == first
        assert await said(runner, spec_in(tmp_path), "say whole") == "whole"


async def test_an_agent_wanted_anew_goes_before_the_program_on_the_path(tmp_path: Path) -> None:
    own = program(tmp_path / "bin", "tiny-agent", '#!/bin/sh\necho "tiny 0.9.1"\n')
    adapter = PackedAdapter(OnPath(program="tiny-agent"), npm_source(tmp_path))
    async with running(adapter, installer=installer_in(tmp_path), search=[str(own.parent)]) as runner:
        made = await runner.install("tiny", None, reinstall=True)
        (agent,) = await runner.catalogue()
    assert (made.version, agent.version, agent.path) == ("1.2.3", "1.2.3", made.path)


async def test_an_agent_that_cannot_be_installed_says_what_to_do(tmp_path: Path) -> None:
    async with running(PackedAdapter(), installer=installer_in(tmp_path)) as runner:
        with pytest.raises(InstallFailed, match="put its program on the PATH"):
            await runner.install("tiny", None)
    own = program(tmp_path / "bin", "tiny-agent", "#!/bin/sh\nexit 1\n")
    async with running(PackedAdapter(), search=[str(own.parent)]) as runner:
        with pytest.raises(VersionNotOffered):
            await runner.install("tiny", "1.0")


async def test_a_program_named_in_the_settings_beats_all_others(tmp_path: Path) -> None:
    own = program(tmp_path / "own", "mine", SCRIPT)
    adapter = PackedAdapter(npm_source(tmp_path))
    named = {"tiny": (str(own), "-start", "say named")}
    async with running(adapter, installer=installer_in(tmp_path), named=named) as runner:
        assert (await runner.catalogue())[0].path == str(own)
        sink = Recorder()
        await runner.connect(spec_in(tmp_path), sink)
        await until(lambda: sink.texts() == ["named"])


@pytest.mark.parametrize("question", ["--version", "version", "-V"])
async def test_a_program_is_asked_for_its_version_once(tmp_path: Path, question: str) -> None:
    text = (
        f'#!/bin/sh\necho "$@" >> {tmp_path}/asked\n[ "$1" = {question} ] || exit 2\necho "tiny v3.1.4-beta (linux)"\n'
    )
    own = program(tmp_path / "bin", "tiny-agent", text)
    async with running(PackedAdapter(), search=[str(own.parent)]) as runner:
        shown = [(await runner.catalogue())[0].version for _ in range(2)]
        before = (tmp_path / "asked").read_text().splitlines()
        os.utime(own, (1, 1))
        await runner.catalogue()
    assert shown == ["3.1.4-beta"] * 2
    assert before == ["--version", "version", "-V"][: len(before)]
    assert len((tmp_path / "asked").read_text().splitlines()) == 2 * len(before)


async def test_a_program_that_hangs_when_asked_has_no_version(tmp_path: Path) -> None:
    own = program(tmp_path / "bin", "tiny-agent", "#!/bin/sh\nsleep 600 & sleep 600\n")
    async with running(PackedAdapter(), search=[str(own.parent), "/usr/bin", "/bin"]) as runner:
        (agent,) = await runner.catalogue()
    assert (agent.installed, agent.version) == (True, None)


async def test_what_an_agent_offered_when_it_last_started_is_listed(tmp_path: Path) -> None:
    own = program(tmp_path / "bin", "tiny-agent", SCRIPT)
    async with running(OfferingAdapter(), search=[str(own.parent)]) as runner:
        before = (await runner.catalogue())[0].models
        await said(runner, spec_in(tmp_path), "say hi")
        after = (await runner.catalogue())[0].models
    assert (before, after) == ((), (Model(id="m1", name="M1"),))


@pytest.mark.parametrize(
    ("share", "fields", "seen"),
    [
        (False, {}, "(not set)"),
        (True, {}, "host"),
        (True, {"env": {"KEY": "session"}}, "session"),
        (True, {"provider": Provider(type="openai", base_url="http://127.0.0.1:1")}, "(not set)"),
    ],
)
async def test_the_hosts_credentials_reach_an_agent_only_where_that_is_wanted(
    tmp_path: Path, share: bool, fields: dict[str, Any], seen: str
) -> None:
    own = program(tmp_path / "bin", "tiny-agent", SCRIPT)
    (tmp_path / ".auth.json").write_text('{"key": "host"}')
    adapter = PackedAdapter(credentials=(KEY,))
    environ = {"HOME": str(tmp_path)}
    async with running(adapter, search=[str(own.parent)], environ=environ, share_credentials=share) as runner:
        assert (await runner.catalogue())[0].credentials_available == ("KEY",)
        assert await said(runner, spec_in(tmp_path, **fields), "env KEY") == seen


async def test_a_key_of_the_host_goes_where_the_host_sends_it(tmp_path: Path) -> None:
    own = program(tmp_path / "bin", "tiny-agent", SCRIPT)
    key = Credential(name="KEY", env=("KEY",), address="KEY_URL")
    environ = {"KEY": "host", "KEY_URL": "http://127.0.0.1:1", "OTHER_URL": "x"}
    adapter = PackedAdapter(credentials=(key,))
    async with running(adapter, search=[str(own.parent)], environ=environ, share_credentials=True) as runner:
        assert await said(runner, spec_in(tmp_path), "env KEY_URL") == "http://127.0.0.1:1"
    async with running(adapter, search=[str(own.parent)], environ=environ) as runner:
        assert await said(runner, spec_in(tmp_path), "env KEY_URL") == "(not set)"


def test_another_version_moves_the_packages_that_share_the_first_ones(tmp_path: Path) -> None:
    source = Npm(packages={"agent": "1.0.0", "agent-{platform}": "1.0.0", "helper": "3.0.0"}, program="x")
    with serving() as vendor:
        installer = installer_in(tmp_path, environ={"NPM_CONFIG_REGISTRY": vendor.url})
        told: list[str] = []
        with pytest.raises(InstallFailed):
            installer.install("tiny", (source,), version="2.0.0", progress=told.append)
    assert told[0] == "npm installs agent@2.0.0 agent-linux-x64@2.0.0 helper@3.0.0"


async def test_an_agent_that_is_too_old_to_start_is_told_with_the_next_step(tmp_path: Path) -> None:
    script = '#!/bin/sh\n[ "$1" = --version ] && echo "tiny 0.9.1" && exit 0\necho "unknown option" >&2\nexit 1\n'
    own = program(tmp_path / "bin", "tiny-agent", script)
    adapter = PackedAdapter(OnPath(program="tiny-agent"), Npm(packages={"tiny": "1.2.3"}, program="x"))
    async with running(adapter, search=[str(own.parent), *SEARCH]) as runner:
        with pytest.raises(AgentStartFailed) as caught:
            await runner.connect(spec_in(tmp_path), Recorder())
    assert "unknown option" in str(caught.value)
    assert "0.9.1, older than 1.2.3" in str(caught.value)
    assert "`ostler agents install tiny --version 1.2.3`" in str(caught.value)


@pytest.mark.parametrize(("version", "warns"), [("1.2.3", False), ("1.2.2", False), ("1.3.0", True), (None, False)])
def test_only_a_newer_version_is_warned_about(version: str | None, warns: bool) -> None:
    assert (newer_hint("tiny", version, "1.2.3") is not None) == warns
    assert newer_hint("tiny", version, None) is None


def test_a_version_that_lies_differently_is_found_where_its_package_says(tmp_path: Path) -> None:
    file = tmp_path / "tiny.tgz"
    manifest = '{"name": "tiny-package", "version": "0.1.0", "bin": {"tiny": "./old/place/tiny"}}'
    file.write_bytes(tarball({"package/package.json": manifest, "package/old/place/tiny": SCRIPT}))
    source = Npm(packages={"tiny-package": f"file:{file}"}, program="tiny-package/new/place/tiny")
    found = installer_in(tmp_path).install("tiny", (source,))
    assert (found.version, found.path.endswith("tiny-package/old/place/tiny")) == ("0.1.0", True)


@pytest.mark.parametrize("told", ['"bin": "../../escape"', '"bin": "nowhere"', '"license": "x"'])
def test_a_package_without_the_program_leaves_nothing_installed(tmp_path: Path, told: str) -> None:
    file = tmp_path / "tiny.tgz"
    manifest = f'{{"name": "tiny-package", "version": "0.1.0", {told}}}'
    file.write_bytes(tarball({"package/package.json": manifest}))
    source = Npm(packages={"tiny-package": f"file:{file}"}, program="tiny-package/bin/tiny")
    installer = installer_in(tmp_path)
    with pytest.raises(InstallFailed, match="there is no "):
        installer.install("tiny", (source,))
    assert installer.current("tiny") is None
    assert not [path for path in (tmp_path / "agents" / "tiny").rglob("*") if path.name == "package.json"]
