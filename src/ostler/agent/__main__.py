"""`python -m ostler.agent`: says that it is ready before it loads what a turn needs, which takes much longer."""

import os
import sys
from pathlib import Path

import msgspec

from ostler.agent.journal import Journal, Unreadable
from ostler.wire.own_agent import AgentReady, Failed, Noted, Start


def main() -> int:
    """Talk over stdin and stdout until the input ends."""
    line, rest = _first_line()
    if not line:
        return 0
    try:
        start = msgspec.json.decode(line, type=Start)
    except msgspec.DecodeError as error:
        print(f"The first line must say how to start: {error}", file=sys.stderr)
        return 2
    home = Path(os.environ.get("HOME") or ".").resolve()
    journal, notices = _journal(home, start)
    resumed = start.resume is not None and journal.conversation == start.resume
    _say(
        AgentReady(
            session=journal.conversation,
            resumed=resumed,
            model=start.model,
            mode=start.mode,
            reached=journal.reached,
        )
    )
    for notice in notices:
        _say(notice)
    sys.modules["httpx._main"] = None  # type: ignore[assignment]  # its command line loads a lot
    from ostler.agent.running import run  # noqa: PLC0415  it takes longer than all that is above

    return run(start, journal, rest)


def _first_line() -> tuple[bytes, bytes]:
    read = b""
    while b"\n" not in read:
        more = os.read(0, 65536)
        if not more:
            return b"", b""
        read += more
    line, _, rest = read.partition(b"\n")
    return line, rest


def _journal(home: Path, start: Start) -> tuple[Journal, list[Noted]]:
    if start.resume is not None:
        try:
            found = Journal.resume(home, start.resume)
        except Unreadable as error:
            lost = f"The agent's memory of this session cannot be read ({error}); it begins a new one."
            return Journal.begin(home), [Noted(message=lost, code="memory")]
        if found is not None:
            return found, []
    return Journal.begin(home), []


def _say(frame: AgentReady | Noted | Failed) -> None:
    os.write(1, msgspec.json.encode(frame) + b"\n")


if __name__ == "__main__":
    sys.exit(main())
