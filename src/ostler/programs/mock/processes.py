"""Directives of the mock agent that start processes: honest commands, and children that are hard to get rid of."""

import codecs
import os
import select
import signal
import subprocess
import time
from collections.abc import Callable

from ostler.programs.mock.channel import LINGER_SECONDS
from ostler.programs.mock.talk import needed
from ostler.programs.mock.turn import BadDirective, Turn

MOST_CHARACTERS = 64 * 1024
"""How much of a command's output its tool result repeats."""


def run(turn: Turn, command: str) -> None:
    """Run a shell command in the folder and show its output while it runs."""
    if not turn.options.may_write():
        turn.say(f"I am in plan mode, so I did not run {needed(command, 'a command')}.")
        return
    tool = turn.start_tool("shell", {"command": needed(command, "a command")})
    with subprocess.Popen(  # noqa: S602 - running the user's command is the point
        command,
        shell=True,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        process_group=0,
    ) as child:
        try:
            output = _follow(turn, tool, child)
        finally:
            _end_group(child)
    code = child.returncode
    turn.end_tool(tool, output if code == 0 else f"{output}(exit code {code})", ok=code == 0)


def _follow(turn: Turn, tool: int, child: "subprocess.Popen[bytes]") -> str:
    """Show output until the command is over; a pipe that somebody keeps open does not hold us up."""
    decode = codecs.getincrementaldecoder("utf-8")
    pipes = (("stdout", child.stdout), ("stderr", child.stderr))
    streams = {pipe.fileno(): (name, decode("replace")) for name, pipe in pipes if pipe}
    output = ""
    while True:
        over = child.poll() is not None  # looked at before reading, so that the last output is not lost
        readable, _, _ = select.select(list(streams), [], [], 0 if over else 0.02)
        turn.pause(0)
        for source in readable:
            name, decoder = streams[source]
            data = os.read(source, 1 << 16)
            if not data:
                del streams[source]
            elif text := decoder.decode(data):
                turn.send("tool_output", id=tool, stream=name, data=text)
                output = (output + text)[-MOST_CHARACTERS:]
        if over and not readable:
            return output


def _end_group(child: "subprocess.Popen[bytes]") -> None:
    if child.poll() is None:
        os.killpg(child.pid, signal.SIGKILL)
        child.wait()


def ignore_signals(turn: Turn, _: str) -> None:
    """Outlive SIGINT, SIGTERM and the end of stdin."""
    turn.agent.channel.immortal = True
    _ignore()
    turn.say("I ignore polite signals from now on.")


def _ignore() -> None:
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)


def _leave_parent() -> None:
    if os.fork() > 0:
        os._exit(0)


def _silence() -> None:
    nothing = os.open(os.devnull, os.O_RDWR)
    for target in (0, 1, 2):
        os.dup2(nothing, target)


def _sleep() -> None:
    os.execvp("sleep", ["sleep", str(LINGER_SECONDS)])  # noqa: S606 - a process without a shell is wanted


def _fork_for_ever() -> None:
    os.closerange(3, 256)  # a process without exec must let go of the pipe that reports its pid
    end = time.monotonic() + LINGER_SECONDS
    while time.monotonic() < end:
        time.sleep(0.05)
        _leave_parent()
        os.setsid()


Step = Callable[[], object]
GRANDCHILDREN: dict[str, tuple[tuple[Step, ...], Step]] = {
    "plain": ((), _sleep),
    "setsid": ((_silence, os.setsid), _sleep),
    "doublefork": ((_silence, _leave_parent), _sleep),
    "ignore": ((_silence, _ignore), _sleep),
    "cleanenv": ((_silence, os.setsid, _leave_parent, os.environ.clear), _sleep),
    "forkloop": ((_silence, os.setsid, _leave_parent), _fork_for_ever),
}
"""For each kind: how the process makes itself hard to find, and what it then does for ten minutes."""


def grandchild(turn: Turn, kind: str) -> None:
    """Leave a process behind and tell its pid."""
    if kind not in GRANDCHILDREN:
        raise BadDirective(f"The kinds are {', '.join(GRANDCHILDREN)}.")
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        _become(kind, writing)
    os.close(writing)
    with open(reading) as report:  # noqa: PTH123 - it is no path; ends when the process is what it will be
        pid = int(report.read())
    if pid != child:
        os.waitpid(child, 0)
    turn.say(f"Started grandchild {kind} with pid {pid}.")


def _become(kind: str, writing: int) -> None:
    steps, work = GRANDCHILDREN[kind]
    try:
        for step in steps:
            step()
        os.write(writing, str(os.getpid()).encode())
        work()
    finally:
        os._exit(0)
