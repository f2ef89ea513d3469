"""What is particular to the engine that hands work to Temporal."""

import subprocess
import sys
from pathlib import Path

import pytest
from temporalio.client import WorkflowHistory
from temporalio.worker import Replayer

from ostler.base.errors import SettingsError
from ostler.base.settings import Settings
from ostler.server.engine.opening import engine_of
from ostler.server.engine.temporal.connecting import Access, Unreachable, connected
from ostler.server.engine.temporal.workflow import JobWorkflow
from ostler.server.store.records import NewJob
from ostler.server.store.sqlite.store import SqliteStore
from tests.engine.conftest import new_deployment
from tests.engine.history_writing import COMMAND, HISTORIES, KINDS, histories
from tests.engine.working import Notes, until_gone
from tests.support.patience import until
from tests.support.temporal_server import running_temporal, shared_temporal

RECORDED = sorted(HISTORIES.glob("*.json"))


@pytest.mark.parametrize("file", RECORDED, ids=lambda file: file.stem)
async def test_what_earlier_code_began_goes_on_with_this_code(file: Path) -> None:
    history = WorkflowHistory.from_json(file.stem, file.read_text())
    await Replayer(workflows=[JobWorkflow]).replay_workflow(history)


def test_there_is_a_history_of_each_kind_for_each_version() -> None:
    versions = {file.stem.partition("-")[0] for file in RECORDED}
    wanted = {f"{version}-{key}" for version in versions for key in KINDS}
    assert versions
    assert {file.stem for file in RECORDED} == wanted, f"make them with `{COMMAND} VERSION`"


async def test_a_history_holds_keys_and_numbers_only(tmp_path: Path) -> None:
    for key, text in (await histories(shared_temporal(), tmp_path)).items():
        assert key in text
        for secret in ("sekret", "Traceback", ".py", str(tmp_path), "127.0.0.1"):
            assert secret not in text, f"{key} tells {secret}"


async def test_work_waits_while_temporal_is_away_and_goes_on_when_it_is_back(tmp_path: Path) -> None:
    store = await SqliteStore.open(tmp_path / "ostler.db", sync="normal", boot="now")
    with running_temporal(tmp_path) as server:
        notes = Notes({"begun": 2, "before": 2})
        new_engine = engine_of(Settings(state_dir=tmp_path, engine=server.url, deployment=new_deployment()))
        server.kill()
        engine = new_engine(store.jobs, "srv_1")
        await engine.start({"note": notes.work()})  # nobody waits for it
        await engine.run(NewJob(key="before", kind="note"))
        server.start()
        await until_gone(store.jobs.find, "before")
        await engine.run(NewJob(key="begun", kind="note"))
        await until(lambda: "begun" in notes.tried, what="it was tried")
        server.kill()
        await engine.run(NewJob(key="meanwhile", kind="note"))
        server.start()
        await until_gone(store.jobs.find, "begun", "meanwhile")
        await engine.close()
    await store.close()
    assert sorted(notes.done) == ["before", "begun", "meanwhile"]


@pytest.mark.parametrize(
    ("settings", "name", "reason"),
    [
        ({"engine": "http://host/x"}, "engine", "must be of the form temporal://host:7233/namespace"),
        ({"engine": "temporal://host"}, "engine", "must be of the form"),
        ({"engine": "temporal://host:none/x"}, "engine", "must be of the form"),
        ({"engine": "temporal://me:sekret@host/x"}, "engine", "holds no credentials"),
        ({"engine": "temporal://host/x", "engine_ca": "/nowhere"}, "engine_ca", "cannot be read"),
        (
            {"engine": "temporal://host/x", "engine_certificate": "/dev/null"},
            "engine_certificate_key",
            "together",
        ),
    ],
)
def test_settings_that_cannot_be_right_are_refused_at_once(settings: dict[str, str], name: str, reason: str) -> None:
    with pytest.raises(SettingsError) as refused:
        engine_of(Settings(state_dir=Path("/nonexistent"), **settings))  # type: ignore[arg-type]  # as they are given
    assert refused.value.fields["name"] == name
    assert reason in str(refused.value)
    assert "sekret" not in str(refused.value)


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("temporal://127.0.0.1:1/default", "cannot be reached"),
        ("{host}/nowhere", "has no namespace 'nowhere'. Create it, or correct --engine."),
    ],
)
async def test_why_it_cannot_be_used_is_said_in_a_line(url: str, reason: str) -> None:
    known = shared_temporal().url.rpartition("/")[0]
    settings = Settings(state_dir=Path("/nonexistent"), engine=url.format(host=known))
    with pytest.raises(Unreachable) as away:
        await connected(Access.reading(settings), "ostler-test")
    assert reason in str(away.value)
    assert "\n" not in str(away.value)


def test_a_server_without_it_does_not_load_its_driver_and_one_with_it_says_what_is_missing() -> None:
    program = """
import sys
import ostler.app
assert not [name for name in sys.modules if name.startswith(("temporalio", "obstore"))]
sys.modules["temporalio"] = None
from pathlib import Path
from ostler.base.settings import Settings
from ostler.server.engine.opening import engine_of
from tests.support.patience import until
try:
    engine_of(Settings(state_dir=Path("/nonexistent"), engine="temporal://host/x"))
except Exception as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert "pip install 'ostler[temporal]'" in done.stdout
