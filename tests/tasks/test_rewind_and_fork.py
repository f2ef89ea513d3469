"""Rewind and fork bring files, conversation and the agent's memory back together, and leave the rest alone."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx

from tests.support.http_helpers import assert_problem
from tests.support.ordering import (
    events,
    new_session,
    prompts,
    say,
    settled,
    shell,
    task_server,
    texts,
    tree_now,
    tree_of,
)
from tests.support.places import make_repository, tree_hash

_TURNS = 20


def _write(turn: int) -> tuple[str, ...]:
    return (f"mock: write file{turn % 7}.txt turn {turn}", f"mock: write sub/n{turn}.txt {turn}", "mock: recall")


def _forget_nothing(turns: int) -> str:
    return f"I remember {turns} user turn{'s' if turns != 1 else ''}, this one included."


def test_twenty_turns_can_be_forked_and_rewound_each(api: httpx.Client, repository: Path, tmp_path: Path) -> None:
    before = tree_hash(repository)
    session = new_session(api, repository)
    for turn in range(1, _TURNS + 1):
        assert say(api, session, *_write(turn)) == turn
    trees = [tree_of(api, session, turn) for turn in range(_TURNS + 1)]
    said = prompts(api, session)
    log = events(api, session)

    forks = [api.post(f"/sessions/{session}/fork", json={"turn": turn}).json() for turn in range(1, _TURNS + 1)]
    assert [tree_of(api, fork["id"], turn) for turn, fork in enumerate(forks, 1)] == trees[1:]
    assert [prompts(api, fork["id"]) for fork in forks] == [said[:turn] for turn in range(1, _TURNS + 1)]
    assert events(api, session) == log

    for turn in range(_TURNS, 0, -1):
        answer = api.post(f"/sessions/{session}/rewind", json={"turn": turn})
        assert answer.status_code == 200, answer.text
        assert prompts(api, session) == said[:turn]
        assert _changed_since(api, session, turn) == []
    for turn in (15, 1):
        assert tree_now(api, forks[turn - 1]["id"], tmp_path / str(turn)) == trees[turn]
    assert tree_hash(repository) == before
    for fork in forks:
        api.delete(f"/sessions/{fork['id']}")
    api.delete(f"/sessions/{session}")


def _changed_since(api: httpx.Client, session: str, turn: int) -> list[str]:
    kept = api.get(f"/sessions/{session}/snapshots").json()["snapshots"]
    old = next(each["snapshotId"] for each in kept if each["turn"] == turn)
    return [file["path"] for file in api.get(f"/sessions/{session}/diff", params={"old": old}).json()["files"]]


def test_the_agent_remembers_a_rewound_session_as_far_as_it_goes(api: httpx.Client, repository: Path) -> None:
    session = new_session(api, repository)
    for _ in range(3):
        say(api, session, "mock: recall")
    api.post(f"/sessions/{session}/rewind", json={"turn": 1})
    assert say(api, session, "mock: recall") == 4
    assert texts(api, session) == [_forget_nothing(1), _forget_nothing(2)]
    turns = api.get(f"/sessions/{session}/turns").json()["turns"]
    assert [(turn["number"], turn.get("after"), turn.get("rewound", False)) for turn in turns] == [
        (1, None, False),
        (2, None, True),
        (3, None, True),
        (4, 1, False),
    ]
    starts = [event["data"] for event in events(api, session, "session.info") if event["data"].get("start") == 2]
    assert starts[0]["memory"] == "native"
    api.delete(f"/sessions/{session}")


def test_a_chat_shows_only_what_still_counts(api: httpx.Client, repository: Path) -> None:
    session = new_session(api, repository)
    for word in ("one", "two", "three"):
        say(api, session, f"mock: say {word}")
    api.post(f"/sessions/{session}/rewind", json={"turn": 1})
    say(api, session, "mock: say four")
    history = api.post("/load-session", json={"session_id": session}).json()
    shown = [part["text"] for message in history["messages"] for part in message["parts"] if part["type"] == "text"]
    assert shown == ["mock: say one", "one", "mock: say four", "four"]
    api.delete(f"/sessions/{session}")


def test_a_fork_and_its_parent_go_on_without_each_other(api: httpx.Client, repository: Path) -> None:
    parent = new_session(api, repository)
    say(api, parent, "mock: write a.txt one", "mock: recall")
    say(api, parent, "mock: write a.txt two", "mock: recall")
    answer = api.post(f"/sessions/{parent}/fork", json={"turn": 1, "key": "fork-of-one", "title": "Another way"})
    fork = answer.json()
    assert (answer.status_code, fork["key"], fork["title"], fork["forkedFrom"]) == (
        201,
        "fork-of-one",
        "Another way",
        parent,
    )
    say(api, fork["id"], "mock: write b.txt fork", "mock: recall")
    say(api, parent, "mock: recall")
    assert texts(api, fork["id"]) == [_forget_nothing(1), _forget_nothing(2)]
    assert texts(api, parent)[-1] == _forget_nothing(3)
    contents = {
        session: api.get(f"/sessions/{session}/files/content", params={"path": "a.txt"}).text
        for session in (parent, fork["id"])
    }
    assert contents == {parent: "two", fork["id"]: "one"}
    assert api.get(f"/sessions/{parent}/files/stat", params={"path": "b.txt"}).status_code == 404
    api.delete(f"/sessions/{parent}")
    say(api, fork["id"], "mock: recall")
    api.delete(f"/sessions/{fork['id']}")


def test_a_fork_right_after_a_turn_waits_until_the_files_of_it_are_kept(api: httpx.Client, repository: Path) -> None:
    parent = new_session(api, repository)
    for turn in range(1, 4):
        prompt = "\n".join(f"mock: write n{number}.txt {turn}" for number in range(40))
        parts = [{"type": "text", "text": prompt}]
        body = {"session_id": parent, "data": {"messages": [{"role": "user", "parts": parts}]}}
        assert api.post("/messages", json=body).status_code == 200  # it answers as soon as the turn ends
        fork = api.post(f"/sessions/{parent}/fork", json={})
        assert fork.status_code == 201, fork.text
        assert tree_of(api, fork.json()["id"], turn) == tree_of(api, parent, turn)
        api.delete(f"/sessions/{fork.json()['id']}")
    api.delete(f"/sessions/{parent}")


def test_a_fork_can_go_back_further_than_its_own_beginning(api: httpx.Client, repository: Path) -> None:
    parent = new_session(api, repository)
    for name in ("one", "two", "three"):
        say(api, parent, f"mock: write {name}.txt {name}")
    fork = api.post(f"/sessions/{parent}/fork").json()["id"]
    say(api, fork, "mock: write four.txt four")
    answer = api.post(f"/sessions/{fork}/rewind", json={"turn": 2})
    assert answer.status_code == 200, answer.text
    names = {entry["path"] for entry in api.get(f"/sessions/{fork}/files").json()["entries"]}
    assert names >= {"one.txt", "two.txt"}
    assert not names & {"three.txt", "four.txt"}
    assert say(api, fork, "mock: write five.txt five") == 5
    assert api.post(f"/sessions/{fork}/rewind", json={"turn": 2}).status_code == 200
    assert len(prompts(api, fork)) == 2
    for session in (fork, parent):
        api.delete(f"/sessions/{session}")


def test_rewinding_to_the_beginning_leaves_nothing_of_the_conversation(api: httpx.Client, repository: Path) -> None:
    session = new_session(api, repository)
    say(api, session, "mock: write a.txt one", "mock: recall")
    api.post(f"/sessions/{session}/rewind", json={"turn": 0})
    assert prompts(api, session) == []
    assert api.get(f"/sessions/{session}/diff").json()["filesChanged"] == 0
    say(api, session, "mock: recall")
    assert texts(api, session) == [_forget_nothing(1)]
    api.delete(f"/sessions/{session}")


def test_what_was_rewound_can_be_forked_but_not_gone_back_to(api: httpx.Client, repository: Path) -> None:
    session = new_session(api, repository)
    for name in ("one", "two"):
        say(api, session, f"mock: write {name}.txt {name}")
    api.post(f"/sessions/{session}/rewind", json={"turn": 1})
    assert_problem(api.post(f"/sessions/{session}/rewind", json={"turn": 2}), "turn_rewound")
    assert_problem(api.post(f"/sessions/{session}/rewind", json={"turn": 9}), "turn_not_kept")
    fork = api.post(f"/sessions/{session}/fork", json={"turn": 2}).json()["id"]
    assert len(prompts(api, fork)) == 2
    for each in (fork, session):
        api.delete(f"/sessions/{each}")


def test_a_session_that_works_cannot_be_rewound(api: httpx.Client, repository: Path) -> None:
    session = new_session(api, repository)
    say(api, session, "mock: say one")
    api.post(f"/sessions/{session}/messages", json={"message": "mock: wait 60"})
    assert_problem(api.post(f"/sessions/{session}/rewind", json={"turn": 1}), "session_busy")
    fork = api.post(f"/sessions/{session}/fork").json()["id"]
    assert prompts(api, fork) == ["mock: say one"]
    api.post(f"/sessions/{session}/interrupt")
    settled(api, session, turn=2)
    for each in (fork, session):
        api.delete(f"/sessions/{each}")


def test_an_agent_that_lost_its_memory_is_told_the_conversation(
    api: httpx.Client, repository: Path, tasks_state: Path
) -> None:
    session = new_session(api, repository)
    say(api, session, "mock: say the word is swordfish")
    workspace = api.get(f"/sessions/{session}").json()["workspaceId"]
    shell(tasks_state / "memories", f"rm -r {workspace}/*/.mock-agent")
    api.post(f"/sessions/{session}/rewind", json={"turn": 1})
    say(api, session, "mock: recall")
    assert texts(api, session)[-1] == _forget_nothing(1)
    starts = [event["data"] for event in events(api, session, "session.info") if event["data"].get("start")]
    assert starts[-1]["memory"] == "replayed"
    api.delete(f"/sessions/{session}")


def test_a_fork_has_the_changes_of_its_parent_but_not_its_cost(api: httpx.Client, repository: Path) -> None:
    parent = new_session(api, repository)
    say(api, parent, "mock: write a.txt one", "mock: usage 100 10 0.5")
    fork = api.post(f"/sessions/{parent}/fork", json={}).json()
    assert (fork.get("usage"), fork["changes"]) == (None, {"files": 1, "added": 1})
    say(api, fork["id"], "mock: usage 10 1 0.25")
    used = {session: api.get(f"/sessions/{session}").json()["usage"]["cost"] for session in (parent, fork["id"])}
    assert used == {parent: {"USD": 0.5}, fork["id"]: {"USD": 0.25}}
    for session in (parent, fork["id"]):
        api.delete(f"/sessions/{session}")


def test_forks_that_want_the_same_key_leave_one_session_and_the_folders_of_one(tmp_path: Path, state_dir: Path) -> None:
    project = make_repository(tmp_path / "project")
    with task_server(state_dir, tmp_path) as (_, api), ThreadPoolExecutor() as pool:
        session = new_session(api, project)
        say(api, session, "mock: write a.txt one")
        forks = [pool.submit(api.post, f"/sessions/{session}/fork", json={"key": "same"}) for _ in range(4)]
        statuses = sorted(fork.result().status_code for fork in forks)
        assert statuses == [201, 409, 409, 409]
        known = {each["id"] for each in api.get("/sessions").json()["items"]}
        folders = {path.name for path in (state_dir / "sessions").iterdir()}
        assert (len(known), folders <= known) == (2, True)
        assert len(list((state_dir / "workspaces" / "workspaces").iterdir())) == 2
