"""An agent's program for one prompt, in the form that then ends: does the program fail, or the talk with it?

Nothing of a session goes this way: it can neither be asked nor interrupted.
"""

import asyncio
import os
import signal
import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import msgspec

from ostler.agents.adapter import Adapter, Installation, Launch, OneShot
from ostler.base.errors import AgentNotInstalled, AgentStartFailed, Unprocessable
from ostler.base.settings import Settings
from ostler.conformance.programs import adapter_of, programs_of
from ostler.conformance.rows import row_of
from ostler.conformance.stage import Programs
from ostler.runner.installs.finder import Finder
from ostler.runner.runtimes.home import base_environment
from ostler.runner.runtimes.local import LocalRuntime
from ostler.runner.runtimes.registry import Runtimes
from ostler.runner.runtimes.runtime import Start
from ostler.runner.starting.starter import OWN, Starter
from ostler.runner.starting.ways import with_pipes
from ostler.wire.agents import OneShotResult
from ostler.wire.providers import Provider
from ostler.wire.running import AgentSpec

_SECONDS = 60.0
_STOP_SECONDS = 5.0
_WORDS = "Hello from the model"
_LAST = 2000


async def one_shot(name: str, command: Sequence[str], settings: Settings, environ: Mapping[str, str]) -> OneShotResult:
    """Play one prompt against the scripted model; raises Unprocessable for an agent that has no such form."""
    adapter = adapter_of(name, settings, command)
    agent = adapter.info.id
    if not isinstance(adapter, OneShot):
        reason = (
            f"Agent '{agent}' is not known to take one prompt and end. Try `ostler agents conform {agent} --only text`."
        )
        raise Unprocessable(reason=reason)
    programs = programs_of(adapter, settings, environ, command)
    found = Finder(programs.search, installer=programs.installer, named=programs.named).find(adapter)
    if found is None:
        raise AgentNotInstalled(agent=agent, looked_in=", ".join(programs.search))
    with tempfile.TemporaryDirectory(prefix="ostler-", ignore_cleanup_errors=True) as folder:
        return await _played(adapter, adapter, found, programs, Path(folder))


async def _played(
    adapter: Adapter, form: OneShot, found: Installation, programs: Programs, folder: Path
) -> OneShotResult:
    row = row_of(adapter)
    cwd = folder / "workspace"
    cwd.mkdir()
    with row.service() as model:
        provider = Provider(type=row.provider, base_url=model.url, api_key="sk-test") if row.provider else None
        spec = AgentSpec(
            session_id="ses_1",
            agent=adapter.info.id,
            start=1,
            cwd=str(cwd),
            home=str(folder / "home"),
            env=row.variables(model.url),
            permission_mode="bypass",
            model=row.model,
            provider=provider,
        )
        launch = form.one_shot(spec, found, row.script([f"say {_WORDS}"]))
        code, output, errors = await _run(launch, spec, programs)
    return OneShotResult(
        agent=adapter.info.id,
        command=found.command,
        exit_code=code,
        has_answer=_WORDS.encode() in output,
        frames=dict(Counter(map(_type_of, output.splitlines()))),
        stderr=errors[-_LAST:].decode(errors="replace").strip(),
    )


async def _run(launch: Launch, spec: AgentSpec, programs: Programs) -> tuple[int | None, bytes, bytes]:
    starter = Starter(Runtimes((LocalRuntime(None, (), programs.environ),), ()))
    env = {**base_environment(programs.environ), "PATH": os.pathsep.join(programs.search), **spec.env, **launch.env}
    start = Start(grant=OWN, argv=launch.argv, env=env, home=spec.home, cwd=spec.cwd, files=launch.files)
    try:
        process = await starter.start(start, with_pipes)
    except OSError as error:
        reason = f"{launch.argv[0]} cannot be run ({error.strerror})."
        raise AgentStartFailed(agent=spec.agent, reason=reason) from error
    talk = asyncio.create_task(process.communicate(b""))
    try:
        await asyncio.wait([talk], timeout=_SECONDS)
        code = process.returncode if talk.done() else None
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        await asyncio.wait([talk], timeout=_STOP_SECONDS)  # what it left behind may hold on to its pipes
        talk.cancel()
    output, errors = talk.result() if talk.done() and not talk.cancelled() else (b"", b"")
    return code, output, errors


def _type_of(line: bytes) -> str:
    try:
        kind = msgspec.json.decode(line, type=_Frame).type
    except msgspec.MsgspecError:
        return "no frame"
    return kind


class _Frame(msgspec.Struct):
    type: str = "untyped"
