"""What in a person's own checkout is the agent's: the files that its tools named, turn by turn."""

from itertools import pairwise
from pathlib import PurePosixPath
from typing import NamedTuple

from ostler.base.errors import InvalidRequest
from ostler.link.workspaces import Workspaces
from ostler.server.sessions.folders import own_folders, relative
from ostler.server.sessions.log.reads import pages
from ostler.server.sessions.session import SessionCore
from ostler.wire.events import FileChanged, decode_event
from ostler.wire.provisioning import OwnStep
from ostler.wire.workspaces import IN_PLACE

_MOST_NAMED = 20


class TurnFiles(NamedTuple):
    """The files that were changed during the agent's turns."""

    named: tuple[str, ...]
    """By its tools, so that they are its own."""
    others: tuple[str, ...]
    """By its commands, or by the person beside it."""


def is_own(session: SessionCore) -> bool:
    """Whether a person may work in its files beside the agent."""
    made = session.state.workspace
    return made is not None and made.provider == IN_PLACE


async def own_steps(
    workspaces: Workspaces, session: SessionCore, paths: tuple[str, ...] | None = None
) -> tuple[OwnStep, ...] | None:
    """The agent's steps, in order; None where all that was changed is the agent's."""
    if not is_own(session):
        return None
    snapshots = await session.reads.store.logs.snapshots(session.id)
    steps: list[OwnStep] = []
    for before, after in pairwise(each for each in snapshots if each.sequence > session.state.moved_at):
        if after.changed_by != "agent":
            continue
        is_undoing = after.restored_from is not None
        named = None if is_undoing or paths else await named_files(workspaces, session, after.turn)
        chosen = paths or (tuple(sorted(named)) if named is not None else None)
        steps.append(OwnStep(old=before.snapshot_id, new=after.snapshot_id, paths=chosen))
    if paths is not None:
        await _refuse_unknown(workspaces, session, tuple(steps), paths)
    return tuple(steps)


async def turn_files(workspaces: Workspaces, session: SessionCore, steps: tuple[OwnStep, ...]) -> TurnFiles:
    """Which files the steps changed, and which of them were the agent's for sure."""
    named: set[str] = set()
    others: set[str] = set()
    for step in steps:
        changed = await _changed(workspaces, session, step)
        its = changed if step.paths is None else changed & set(step.paths)
        named |= its
        others |= changed - its
    return TurnFiles(tuple(sorted(named)), tuple(sorted(others - named)))


async def _refuse_unknown(
    workspaces: Workspaces, session: SessionCore, steps: tuple[OwnStep, ...], paths: tuple[str, ...]
) -> None:
    known = await turn_files(workspaces, session, steps)
    if odd := [path for path in paths if path not in known.named][:_MOST_NAMED]:
        why = f"no turn of the agent changed {', '.join(odd)}"
        raise InvalidRequest(reason=f"paths: {why}. Name others; `delivery` lists them.", errors={"paths": [why]})


async def _changed(workspaces: Workspaces, session: SessionCore, step: OwnStep) -> set[str]:
    workspace = session.state.workspace_id or ""
    found = await workspaces.files.diff(workspace, old=step.old, new=step.new, context=0, text=False)
    return {path for file in found.files for path in (file.path, file.old_path) if path is not None}


async def named_files(workspaces: Workspaces, session: SessionCore, number: int) -> set[str]:
    """The files that the agent's tools named as changed in a turn."""
    store = session.reads.store
    turn = await store.logs.find_turn(session.id, number)
    first, last = (turn.first_sequence, turn.last_sequence or session.last) if turn is not None else (0, 0)
    folders = await own_folders(workspaces, session.record, session.state)
    named: set[str] = set()
    async for page in pages(store, session.id, max(0, first - 1)):
        events = [decode_event(stored.body) for stored in page if stored.number <= last]
        paths = [event.data.path for event in events if isinstance(event, FileChanged)]
        named.update(relative(str(PurePosixPath(session.record.cwd) / path), folders) for path in paths)
        if page[-1].number >= last:
            break
    return named
