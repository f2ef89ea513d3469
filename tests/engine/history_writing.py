"""Histories as Temporal has them, kept as JSON in `tests/engine/histories/`.

`python -m tests.engine.history_writing v1` writes those of the code as it is now. Do it once for each change of the
workflow's steps: histories of earlier code cannot be made again and never change.
"""

import asyncio
import sys
import tempfile
from pathlib import Path

from temporalio.client import Client

from ostler.base.settings import Settings
from ostler.server.engine.opening import engine_of
from ostler.server.engine.protocol import Retry
from ostler.server.store.records import NewJob
from ostler.server.store.sqlite.store import SqliteStore
from tests.engine.working import Notes, until_gone
from tests.support.temporal_server import NAMESPACE, TemporalServer, running_temporal

HISTORIES = Path(__file__).parent / "histories"
COMMAND = "python -m tests.engine.history_writing"
KINDS = {
    "done": NewJob(key="done", kind="note", body=b"sekret-body"),
    "retried": NewJob(key="retried", kind="note", body=b"sekret-body"),
    "later": NewJob(key="later", kind="note", body=b"sekret-body", after=6.0),
    "given-up": NewJob(key="given-up", kind="hopeless", body=b"sekret-body"),
}


async def histories(server: TemporalServer, folder: Path) -> dict[str, str]:
    """What Temporal keeps of one job of each kind, by key."""
    store = await SqliteStore.open(folder / "ostler.db", sync="normal", boot="now")
    notes = Notes({"retried": 2, "given-up": 10**6}, "sekret-reason")
    engine = engine_of(Settings(state_dir=folder, engine=server.url, deployment="histories"))(store.jobs, "srv_1")
    try:
        hopeless = notes.work(Retry(first=0.05, longest=0.1, within=1.0))
        await engine.start({"note": notes.work(), "hopeless": hopeless})
        for job in KINDS.values():
            await engine.run(job)
        await until_gone(store.jobs.find, *KINDS)
        client = await Client.connect(f"127.0.0.1:{server.port}", namespace=NAMESPACE)
        handles = {key: client.get_workflow_handle(f"histories/{key}") for key in KINDS}
        for handle in handles.values():
            await handle.result()
        return {key: (await handle.fetch_history()).to_json() for key, handle in handles.items()}
    finally:
        await engine.close()
        await store.close()


def main(version: str) -> None:
    """Write the histories of this version."""
    with tempfile.TemporaryDirectory() as folder, running_temporal(Path(folder)) as server:
        for key, text in asyncio.run(histories(server, Path(folder))).items():
            (HISTORIES / f"{version}-{key}.json").write_text(text + "\n")


if __name__ == "__main__":
    main(sys.argv[1])
