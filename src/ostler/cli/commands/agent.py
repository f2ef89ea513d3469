"""`ostler agent`: Ostler's own agent does one task in a folder, without a server; for scripts and benchmarks."""

import os
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

import click
import msgspec

from ostler import __version__
from ostler.cli.fleet.commands import fleet_tools, followers, run_everywhere, sync_fence
from ostler.cli.root import INTERRUPTED
from ostler.cli.trajectory import Trajectory
from ostler.wire.own_agent import (
    EFFORTS,
    AgentReady,
    Answered,
    AnyFromAgent,
    AnyToAgent,
    Done,
    Failed,
    Grown,
    Interrupted,
    MessageEnded,
    Noted,
    PermissionAsk,
    PlanAsk,
    Prompted,
    QuestionAsk,
    Reply,
    Start,
)

_NOBODY = "Nobody is there to answer. Decide yourself and go on."
_EXIT = {"completed": 0, "failed": 1, "interrupted": INTERRUPTED}
_END_SECONDS = 20.0
_decoder: msgspec.json.Decoder[AnyFromAgent] = msgspec.json.Decoder(AnyFromAgent)
_FILE = click.Path(dir_okay=False, path_type=Path)


class TaskOrLeader(click.Group):
    """The words of a task, unless the first word is a command of a leader."""

    allow_interspersed_args = True

    def make_context(
        self, info_name: str | None, args: list[str], parent: click.Context | None = None, **extra: Any
    ) -> click.Context:
        """Read the words as one or the other."""
        if args and args[0] in self.commands:
            return click.Group(self.name, commands=self.commands).make_context(info_name, args, parent, **extra)
        return super().make_context(info_name, args, parent, **extra)


@click.group(cls=TaskOrLeader, invoke_without_command=True)
@click.argument("task", required=False)
@click.option("--task-file", type=click.File(encoding="utf-8"), metavar="FILE", help="The task, from a file or `-`.")
@click.option("--model", metavar="PROVIDER/MODEL", help="Model; the usual one of the first provider with a key.")
@click.option("--variant", type=click.Choice(EFFORTS), help="How hard it thinks.")
@click.option("--permission-mode", type=click.Choice(["bypass", "plan"]), default="bypass", show_default=True)
@click.option("--max-turns", type=click.IntRange(1, 10_000), metavar="COUNT", help="Most calls of the model.")
@click.option("--max-tokens", type=click.IntRange(1), metavar="COUNT", help="Most tokens in an answer of the model.")
@click.option("--cwd", default=".", metavar="FOLDER", help="Folder to work in.")
@click.option("--through", metavar="COMMAND", help="Work where COMMAND leads, such as 'podman exec -i NAME'.")
@click.option("--output", type=_FILE, metavar="FILE", help="Write all that the agent says, one JSON object per line.")
@click.option("--trajectory", type=_FILE, metavar="FILE", help="Write what it did, step by step (ATIF).")
@click.pass_context
def command(ctx: click.Context, /, task: str | None, task_file: IO[str] | None, **given: Any) -> None:
    """Have Ostler's own agent do TASK in this folder, without a server.

    It needs the key of a model provider in the environment, such as ANTHROPIC_API_KEY, and asks nobody. Its words go to
    standard output, all else to standard error. The exit code is 0 if it completed, 1 if it failed, 130 if it was
    interrupted.
    """
    if (task is None) == (task_file is None):
        raise click.UsageError("Give the task as TASK or by --task-file, one of them")
    words = (task if task_file is None else task_file.read()) or ""
    if not words.strip():
        raise click.UsageError("The task is empty")
    through = shlex.split(given["through"] or "")
    _check_folder(given["cwd"], is_elsewhere=bool(through))
    start = Start(
        version=__version__,
        permission_mode=given["permission_mode"],
        model=given["model"],
        effort=given["variant"],
        max_turns=given["max_turns"],
        max_tokens=given["max_tokens"],
        through=tuple(through),
        folder=given["cwd"] if through else "",
    )
    trajectory = Trajectory(given["trajectory"], words, given["model"])
    with _agent("." if through else given["cwd"]) as process, _log(given["output"]) as log:
        ctx.exit(_run(process, start, words, trajectory, log))


def _check_folder(folder: str, *, is_elsewhere: bool) -> None:
    if is_elsewhere and not folder.startswith("/"):
        raise click.UsageError(
            f"With --through, --cwd is the folder there, such as --cwd /work; '{folder}' is not absolute"
        )
    if not is_elsewhere and not Path(folder).is_dir():
        raise click.UsageError(f"There is no folder '{folder}'")


@contextmanager
def _agent(cwd: str) -> Iterator["subprocess.Popen[bytes]"]:
    """The agent, which is ended with everything that it started."""
    process = subprocess.Popen(
        [sys.executable, "-I", "-X", "utf8", "-m", "ostler.agent"],
        cwd=cwd,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        start_new_session=True,  # Ctrl-C is told to it as an interrupt
    )
    try:
        yield process
    finally:
        if process.stdin is not None:
            with suppress(OSError):
                process.stdin.close()
        try:
            process.wait(_END_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


@contextmanager
def _log(file: Path | None) -> Iterator[IO[bytes] | None]:
    if file is None:
        yield None
        return
    with file.open("wb") as opened:
        yield opened


def _run(
    process: "subprocess.Popen[bytes]", start: Start, task: str, trajectory: Trajectory, log: IO[bytes] | None
) -> int:
    """The exit code of the turn."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    _send(process, start)
    _send(process, Prompted(text=task))
    session, lines = "", _lines(process)
    try:
        for line in lines:
            if log is not None:
                log.write(line)
                log.flush()
            frame = _decoder.decode(line)
            trajectory.take(frame)
            _show(frame)
            if isinstance(frame, AgentReady):
                session = frame.session
            if isinstance(frame, Done):
                return _EXIT[frame.outcome]
            if (answer := _answer(frame)) is not None:
                _send(process, answer)
    finally:
        _forget(session)
    click.echo(f"The agent ended with {process.wait()} in the middle of the task.", err=True)
    return 1


def _lines(process: "subprocess.Popen[bytes]") -> Iterator[bytes]:
    """What the agent says; Ctrl-C interrupts its turn, a second one leaves."""
    if process.stdout is None:
        return
    interrupted = False
    while True:
        try:
            line = process.stdout.readline()
        except KeyboardInterrupt:
            if interrupted:
                raise
            interrupted = True
            _send(process, Interrupted())
            continue
        if not line:
            return
        yield line


def _send(process: "subprocess.Popen[bytes]", frame: AnyToAgent) -> None:
    if process.stdin is not None:
        with suppress(BrokenPipeError):  # its end is seen when it is read
            process.stdin.write(msgspec.json.encode(frame) + b"\n")
            process.stdin.flush()


def _answer(frame: AnyFromAgent) -> Reply | Answered | None:
    match frame:
        case PermissionAsk():
            return Reply(id=frame.id, allow=False, message=_NOBODY)
        case QuestionAsk():
            return Answered(id=frame.id, answers=None, message=_NOBODY)
        case PlanAsk():
            click.echo(frame.plan)
            return Reply(id=frame.id, allow=False, message="It is noted. End your turn now; nobody carries it out.")
        case _:
            return None


def _show(frame: AnyFromAgent) -> None:
    match frame:
        case Grown(kind="text", parent=None):
            click.echo(frame.text, nl=False)
        case MessageEnded(parent=None):
            click.echo()
        case Noted() | Failed():
            click.echo(frame.message, err=True)
        case _:
            pass


def _forget(session: str) -> None:
    """Nobody goes on with it: what it remembers is not left in the home."""
    home = os.environ.get("HOME")
    if home and session.isalnum():
        shutil.rmtree(Path(home) / ".ostler-agent" / session, ignore_errors=True)


command.add_command(followers, "followers")
command.add_command(run_everywhere)
command.add_command(sync_fence)
command.add_command(fleet_tools)
