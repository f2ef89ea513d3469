"""What a conversation does itself when a line begins with a slash; every other line is for the agent."""

from collections.abc import Awaitable, Callable

from ostler.client import AsyncSession

QUIT = "/quit"
HELP = """\
/model [NAME]  which model the agent has, or another one from the next turn on
/diff          what changed since the session began
/help          this list
/quit          leave; the session goes on (as Ctrl-D does)
Other commands are the agent's own. Two slashes send one of these to the agent: //help.
"""


async def _help(_session: AsyncSession, _rest: str) -> str:
    return HELP


async def _model(session: AsyncSession, name: str) -> str:
    if name:
        await session.update(model=name)
        return f"{name}, from the next turn on.\n"
    await session.refresh()
    return f"{session.info.model or 'The agent chooses its model'}. Choose another one with `/model NAME`.\n"


async def _diff(session: AsyncSession, _rest: str) -> str:
    found = await session.diff()
    return "".join(file.diff or f"{file.path} ({file.status})\n" for file in found.files) or "Nothing has changed.\n"


_OWN: dict[str, Callable[[AsyncSession, str], Awaitable[str]]] = {"/help": _help, "/model": _model, "/diff": _diff}


def own_command(session: AsyncSession, line: str) -> Awaitable[str] | None:
    """What gives the answer to a line that is a command of ours; None if the line is for the agent."""
    word, _, rest = line.strip().partition(" ")
    run = _OWN.get(word)
    return None if run is None else run(session, rest.strip())


def for_agent(line: str) -> str:
    """A line as the agent gets it."""
    return line[1:] if line.startswith("//") and line[1:].split(" ", 1)[0] in {*_OWN, QUIT} else line
