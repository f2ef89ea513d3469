"""The folders of the keepers: which processes an earlier server left behind, and how to be rid of them."""

import asyncio
import shutil
from pathlib import Path

from ostler.base.logs import Log
from ostler.runner.processes.bells import Bells
from ostler.runner.processes.journal import SPEC, StartRecord, read_start_record
from ostler.runner.processes.process import Process
from ostler.runner.processes.survey import FOLDER_NAME
from ostler.wire.running import AgentSpec, ProcessRef

log = Log(__name__)


class KeeperFolders:
    """One folder per agent process, named after its session and the number of its start."""

    def __init__(self, root: Path, bells: Bells) -> None:
        self._root = root
        self._bells = bells

    def of(self, spec: AgentSpec) -> Path:
        """Where the process of this start keeps its files."""
        return self.path(spec.session_id, spec.start)

    def path(self, session_id: str, start: int) -> Path:
        """Where the process of a start keeps its files."""
        return self._root / f"{session_id}.{start}"

    def read(self, ref: ProcessRef) -> StartRecord | None:
        """What a process was started with; None if its start came to nothing, or nobody can tell any more."""
        return read_start_record(self.path(ref.session_id, ref.start))

    async def surviving(self) -> list[ProcessRef]:
        """The newest process of each session; what is older, or never began, is ended and removed."""
        newest: dict[str, ProcessRef] = {}
        rest: list[ProcessRef] = []
        for found in sorted(self._found(), key=lambda ref: ref.start):
            if not (self.path(found.session_id, found.start) / SPEC).exists():  # a damaged one had begun all the same
                rest.append(found)
            else:
                rest += filter(None, [newest.get(found.session_id)])
                newest[found.session_id] = found
        await asyncio.gather(*map(self.discard, rest))
        return list(newest.values())

    def _found(self) -> list[ProcessRef]:
        names = (FOLDER_NAME.fullmatch(path.name) for path in self._root.glob("*.*"))
        return [ProcessRef(session_id=name["session"], start=int(name["start"])) for name in names if name]

    async def discard(self, survivor: ProcessRef) -> None:
        """End the process, if it lives, and remove its folder."""
        folder = self.path(survivor.session_id, survivor.start)
        process = await Process.attach(folder, lambda: None, self._bells)
        await process.stop(grace=0, force=True)
        process.release()
        await asyncio.to_thread(shutil.rmtree, folder, ignore_errors=True)
        log.info("keeper.discarded", session_id=survivor.session_id, pid=process.pid)
