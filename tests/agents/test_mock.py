"""The mock agent talks, asks, works on files and runs commands, as its guide says."""

import base64
import signal
from pathlib import Path

import pytest

from ostler import __version__
from ostler.agents.adapter import Ready, TurnDone
from ostler.wire.events import (
    Cost,
    ErrorData,
    FileChangedData,
    ItemCompletedData,
    ItemDeltaData,
    ItemStartedData,
    PermissionData,
    Question,
    QuestionData,
    QuestionOption,
    SessionInfoData,
    TerminalOutputData,
    UsageUpdatedData,
)
from ostler.wire.items import Item, PlanEntry, PlanUpdatedData
from ostler.wire.parts import FileRefPart, ImagePart, ReasoningPart, TextPart, ToolCallPart, ToolResultPart
from ostler.wire.running import Draft, PermissionAnswer, QuestionAnswer
from ostler.wire.workspace_events import ArtifactCreatedData
from tests.agents.mock_driver import (
    ask_of,
    completed,
    data_of,
    drafts,
    running,
    texts,
    wait_until_alone,
)

COMPLETED = TurnDone(outcome="completed", stop_reason="end_turn")


def _message(status: str, *content: TextPart | ReasoningPart) -> Item:
    return Item(
        item_id="itm_1_1",
        kind="message",
        role="assistant",
        status="completed" if status == "completed" else "in_progress",
        content=content,
        native_item_id="1",
    )


def _delta(text: str) -> Draft:
    return Draft("item.delta", ItemDeltaData(item_id="itm_1_1", delta=TextPart(text=text), native_item_id="1"))


def test_it_says_ready_with_what_it_was_started_with(tmp_path: Path) -> None:
    with running(tmp_path, model="mock-large", mode="plan", variant="high") as mock:
        ready = mock.ready()
        about = mock.turn("mock: about")
    assert ready == Ready(
        native_session_id=ready.native_session_id, agent_version=__version__, model="mock-large", mode="plan"
    )
    assert texts(about) == [
        f"session {ready.native_session_id}, model mock-large, variant high, mode plan, permission mode default"
    ]


def test_a_message_opens_grows_and_closes_with_its_whole_text(tmp_path: Path) -> None:
    with running(tmp_path) as mock:
        outputs = mock.turn("mock: say Hello there.", r"mock: say Two\nlines")
    assert drafts(outputs) == [
        Draft("item.started", ItemStartedData(item=_message("in_progress"))),
        _delta("Hello "),
        _delta("there."),
        _delta("\n"),
        _delta("Two\nlines"),
        Draft(
            "item.completed", ItemCompletedData(item=_message("completed", TextPart(text="Hello there.\nTwo\nlines")))
        ),
    ]
    assert outputs[-1] == COMPLETED


@pytest.mark.parametrize("rate", ["", " 2000/s", " 0", " max"])
def test_streamed_words_all_arrive_in_order(tmp_path: Path, rate: str) -> None:
    with running(tmp_path) as mock:
        outputs = mock.turn(f"mock: stream 300 words{rate}")
    words = "".join(f"w{number} " for number in range(1, 301))
    assert texts(outputs) == [words]
    assert "".join(data.delta.text for data in data_of(outputs, "item.delta")) == words


def test_a_thought_is_a_part_of_its_message(tmp_path: Path) -> None:
    with running(tmp_path) as mock:
        outputs = mock.turn("mock: think Hm.", "mock: say Yes.", "mock: think Or not.")
    thoughts = [ReasoningPart(text=text, visibility="public") for text in ("Hm.", "Or not.")]
    assert completed(outputs) == [_message("completed", thoughts[0], TextPart(text="Yes."), thoughts[1])]


@pytest.mark.parametrize(("directive", "status"), [("tool", "completed"), ("fail-tool", "failed")])
def test_a_tool_call_has_a_result_that_points_to_it(tmp_path: Path, directive: str, status: str) -> None:
    with running(tmp_path) as mock:
        outputs = mock.turn(f'mock: {directive} search {{"query": "a -b"}} -> 3 results')
    call, result = completed(outputs)
    assert (call.kind, call.status, call.content) == (
        "tool_call",
        status,
        (ToolCallPart(name="search", arguments='{"query":"a -b"}', call_id="1"),),
    )
    assert (result.kind, result.status, result.parent_id, result.content) == (
        "tool_result",
        status,
        call.item_id,
        (ToolResultPart(call_id="1", output="3 results"),),
    )


def test_a_command_runs_in_the_folder_and_shows_its_output(tmp_path: Path) -> None:
    with running(tmp_path) as mock:
        outputs = mock.turn("mock: run echo out; echo err >&2; touch made; exit 3")
    assert (tmp_path / "work" / "made").exists()
    assert sorted((data.stream, data.data, data.item_id) for data in data_of(outputs, "terminal.output")) == [
        ("stderr", "err\n", "itm_1_1"),
        ("stdout", "out\n", "itm_1_1"),
    ]
    call, result = completed(outputs)
    assert (call.status, result.status) == ("failed", "failed")
    assert "(exit code 3)" in str(result.content)


def test_an_interrupt_ends_a_command_and_its_children(tmp_path: Path) -> None:
    with running(tmp_path) as mock:
        mock.prompt("mock: run (echo started; sleep 600); echo never", "mock: say never")
        mock.until_event("terminal.output")
        mock.interrupt()
        outputs = mock.rest()
        wait_until_alone(mock)
    assert outputs[-1] == TurnDone(outcome="interrupted", stop_reason="interrupt")
    assert [item.status for item in completed(outputs)] == ["failed", "failed"]


def test_terminal_output_can_belong_to_no_tool(tmp_path: Path) -> None:
    with running(tmp_path) as mock:
        outputs = mock.turn("mock: terminal compiling...")
    assert drafts(outputs) == [Draft("terminal.output", TerminalOutputData(stream="stdout", data="compiling...\n"))]


def test_files_are_really_written_and_edited_with_a_diff(tmp_path: Path) -> None:
    with running(tmp_path) as mock:
        outputs = mock.turn(r"mock: write sub/notes.md one\ntwo\n", "mock: edit sub/notes.md two -> three")
    assert (tmp_path / "work" / "sub" / "notes.md").read_text() == "one\nthree\n"
    path = "sub/notes.md"
    created = f"--- /dev/null\n+++ b/{path}\n@@ -0,0 +1,2 @@\n+one\n+two\n"
    edited = f"--- a/{path}\n+++ b/{path}\n@@ -1,2 +1,2 @@\n one\n-two\n+three\n"
    assert data_of(outputs, "file.changed") == [
        FileChangedData(path=path, action="created", diff=created, item_id="itm_1_1"),
        FileChangedData(path=path, action="modified", diff=edited, item_id="itm_1_2"),
    ]
    assert data_of(outputs, "artifact.created") == [
        ArtifactCreatedData(path=path, action="write", artifact_type="document", item_id="itm_1_1"),
        ArtifactCreatedData(path=path, action="edit", artifact_type="document", item_id="itm_1_2"),
    ]


@pytest.mark.parametrize("directive", ["write ../escaped.txt hello", "edit missing.txt a -> b"])
def test_a_file_tool_that_cannot_work_fails(tmp_path: Path, directive: str) -> None:
    with running(tmp_path) as mock:
        outputs = mock.turn(f"mock: {directive}")
    assert [item.status for item in completed(outputs)] == ["failed", "failed"]
    assert outputs[-1] == COMPLETED
    assert not (tmp_path / "escaped.txt").exists()


@pytest.mark.parametrize("how", [{"permission_mode": "plan"}, {"mode": "plan"}])
@pytest.mark.parametrize("directive", ["write a.txt hello", "edit a.txt a -> b", "run touch a.txt"])
def test_in_plan_mode_it_refuses_to_change_anything(tmp_path: Path, how: dict[str, str], directive: str) -> None:
    with running(tmp_path, **how) as mock:
        outputs = mock.turn(f"mock: {directive}")
    assert texts(outputs)[0].startswith("I am in plan mode, so I did not ")
    assert list((tmp_path / "work").iterdir()) == []


def test_it_waits_for_a_permission_and_goes_on(tmp_path: Path) -> None:
    with running(tmp_path) as mock:
        mock.prompt("mock: permission delete it", "mock: say done")
        asked = mock.until_event("permission.requested")
        mock.answer(PermissionAnswer(ask_id=ask_of(asked), allow=True))
        outputs = mock.rest()
    assert asked == [
        Draft(
            "permission.requested",
            PermissionData(permission_id="per_1_1", action="delete it", status="requested"),
        )
    ]
    assert texts(outputs) == ["Allowed: delete it\ndone"]


def test_a_rejected_permission_ends_the_turn_and_the_reason_is_heard(tmp_path: Path) -> None:
    with running(tmp_path) as mock:
        mock.prompt("mock: permission delete it", "mock: say done")
        asked = mock.until_event("permission.requested")
        mock.answer(PermissionAnswer(ask_id=ask_of(asked), allow=False, message="too dangerous"))
        outputs = mock.rest()
    assert texts(outputs) == ["Rejected: delete it (too dangerous)"]
    assert outputs[-1] == COMPLETED


def test_with_bypass_it_never_asks(tmp_path: Path) -> None:
    with running(tmp_path, permission_mode="bypass") as mock:
        outputs = mock.turn("mock: permission delete it", "please write a file")
    assert texts(outputs) == ["Allowed: delete it"]


def _asked(prompt: str, *options: str, multi: bool = False) -> Question:
    labels = tuple(QuestionOption(label=option) for option in options)
    return Question(question=prompt, options=labels, multi_select=multi, free_text=not options)


@pytest.mark.parametrize(
    ("directive", "questions", "answers", "reply"),
    [
        (
            "question Tea or coffee? | tea | coffee",
            (_asked("Tea or coffee?", "tea", "coffee"),),
            (("tea",),),
            "Tea or coffee? You answered: tea",
        ),
        ("question Your name?", (_asked("Your name?"),), (("Ada",),), "Your name? You answered: Ada"),
        (
            "multi-select Fruit? | apple | pear | plum",
            (_asked("Fruit?", "apple", "pear", "plum", multi=True),),
            (("apple", "plum"),),
            "Fruit? You answered: apple, plum",
        ),
        (
            "questions Size? | S | M ;; *Extras? | milk | sugar",
            (_asked("Size?", "S", "M"), _asked("Extras?", "milk", "sugar", multi=True)),
            (("M",), ("milk", "sugar")),
            "Size? You answered: M\nExtras? You answered: milk, sugar",
        ),
        (
            "question Tea or coffee? | tea | coffee",
            (_asked("Tea or coffee?", "tea", "coffee"),),
            None,
            "You declined to answer: not now",
        ),
    ],
)
def test_it_asks_questions_and_hears_the_answers(
    tmp_path: Path,
    directive: str,
    questions: tuple[Question, ...],
    answers: tuple[tuple[str, ...], ...] | None,
    reply: str,
) -> None:
    with running(tmp_path) as mock:
        mock.prompt(f"mock: {directive}")
        asked = mock.until_event("question.requested")
        mock.answer(QuestionAnswer(ask_id=ask_of(asked), answers=answers, message="not now"))
        outputs = mock.rest()
    assert asked[0].data == QuestionData(
        question_id="que_1_1",
        prompt=questions[0].question,
        options=tuple(option.label for option in questions[0].options),
        status="requested",
        questions=questions,
    )
    assert texts(outputs) == [reply]


def test_plans_numbers_and_titles_become_events(tmp_path: Path) -> None:
    with running(tmp_path) as mock:
        outputs = mock.turn("mock: plan Read | Write", "mock: usage 1200 300 0.02", "mock: title Tidy up")
    entries = (PlanEntry(content="Read", status="in_progress"), PlanEntry(content="Write", status="pending"))
    usage = UsageUpdatedData(
        input_tokens=1200,
        output_tokens=300,
        cost=Cost(amount=0.02, currency="USD"),
        context_used=1500,
        context_window=200_000,
    )
    assert drafts(outputs) == [
        Draft("plan.updated", PlanUpdatedData(entries=entries)),
        Draft("usage.updated", usage),
        Draft("session.info", SessionInfoData(title="Tidy up")),
    ]


def test_a_failed_turn_is_reported_and_the_next_one_works(tmp_path: Path) -> None:
    with running(tmp_path) as mock:
        failed = mock.turn("mock: error Overloaded", "mock: say never")
        assert texts(mock.turn("mock: say fine")) == ["fine"]
    assert drafts(failed) == [Draft("error", ErrorData(message="Overloaded", code="agent_error"))]
    assert failed[-1] == TurnDone(outcome="failed", stop_reason="error")


def test_an_interrupt_ends_a_wait_and_the_next_turn_works(tmp_path: Path) -> None:
    with running(tmp_path) as mock:
        mock.prompt("mock: say start", "mock: wait 600", "mock: say never")
        mock.until_event("item.delta")
        mock.interrupt()
        outputs = mock.rest()
        assert texts(mock.turn("mock: say fine")) == ["fine"]
    assert texts(outputs) == ["start"]
    assert outputs[-1] == TurnDone(outcome="interrupted", stop_reason="interrupt")


def test_steering_is_heard_within_the_turn(tmp_path: Path) -> None:
    with running(tmp_path) as mock:
        mock.prompt("mock: permission go on", "mock: say first")
        asked = mock.until_event("permission.requested")
        mock.steer("be quick")
        mock.steer("mock: say added")
        mock.answer(PermissionAnswer(ask_id=ask_of(asked), allow=True))
        outputs = mock.rest()
    assert texts(outputs) == ['Allowed: go on\nYou added: "be quick".\nfirst\nadded']


def test_it_remembers_its_conversation_after_a_restart(tmp_path: Path) -> None:
    with running(tmp_path) as mock:
        native = mock.ready().native_session_id
        assert texts(mock.turn("mock: recall")) == ["I remember 1 user turn, this one included."]
    with running(tmp_path, resume=native, start=2) as mock:
        assert mock.ready().native_session_id == native
        outputs = mock.turn("mock: recall")
    assert texts(outputs) == ["I remember 2 user turns, this one included."]
    assert completed(outputs)[0].item_id == "itm_2_1"


def test_it_does_not_start_with_a_conversation_it_does_not_know(tmp_path: Path) -> None:
    with running(tmp_path, resume="mock-unknown") as mock:
        assert mock.ended() == ([], 1, "mock: there is no conversation 'mock-unknown'\n")


def test_it_tells_its_folder_and_environment(tmp_path: Path) -> None:
    with running(tmp_path) as mock:
        outputs = mock.turn("mock: pwd", "mock: env HOME", "mock: env NOWHERE")
    assert texts(outputs) == [f"{tmp_path / 'work'}\nHOME={tmp_path / 'home'}\nNOWHERE is not set."]


def test_it_reports_the_images_and_files_it_got(tmp_path: Path) -> None:
    image = tmp_path / "dot.png"
    image.write_bytes(base64.b64decode("iVBORw0KGgo="))
    parts = (ImagePart(path=str(image)), ImagePart(path=str(image)), FileRefPart(path="notes.md", action="read"))
    with running(tmp_path) as mock:
        outputs = mock.turn("mock: say ok", parts=parts)
    assert texts(outputs) == ["I got 2 images and 1 file.\nok"]


@pytest.mark.parametrize(
    "line",
    ["dance", "", "say", "stream many words", "wait soon", "tool x {broken", "edit a b", "usage 1", "grandchild odd"],
)
def test_a_directive_it_cannot_follow_is_explained(tmp_path: Path, line: str) -> None:
    with running(tmp_path) as mock:
        outputs = mock.turn(f"mock: {line}", "mock: say never")
    assert texts(outputs)[-1].startswith(f"I cannot follow 'mock: {line}'. ")
    assert "Example: mock: " in texts(outputs)[-1]
    assert outputs[-1] == COMPLETED


def test_an_ordinary_prompt_gets_a_friendly_answer(tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "README.md").write_text("hello")
    with running(tmp_path) as mock:
        outputs = mock.turn("Please explain this project")
    kinds = [item.kind for item in completed(outputs)]
    assert kinds == ["message", "tool_call", "tool_result", "message"]
    assert completed(outputs)[2].content == (ToolResultPart(call_id="2", output="README.md"),)
    assert 'You said: "Please explain this project".' in texts(outputs)[-1]
    assert "README.md" in texts(outputs)[-1]
    assert {entry.status for entry in data_of(outputs, "plan.updated")[-1].entries} == {"completed"}
    assert len(data_of(outputs, "usage.updated")) == 1


@pytest.mark.parametrize(("allow", "written"), [(True, ["hello-from-mock.md"]), (False, [])])
def test_asked_for_a_file_it_asks_before_writing(tmp_path: Path, allow: bool, written: list[str]) -> None:
    with running(tmp_path) as mock:
        mock.prompt("Write me a greeting")
        asked = mock.until_event("permission.requested")
        mock.answer(PermissionAnswer(ask_id=ask_of(asked), allow=allow))
        assert mock.rest()[-1] == COMPLETED
    assert [path.name for path in (tmp_path / "work").iterdir()] == written


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_it_in_the_middle_of_a_turn(tmp_path: Path, number: signal.Signals) -> None:
    with running(tmp_path) as mock:
        mock.prompt("mock: say start", "mock: wait 600")
        mock.until_event("item.delta")
        mock.process.send_signal(number)
        assert mock.ended() == ([], -number, "")


def test_the_end_of_stdin_ends_it(tmp_path: Path) -> None:
    with running(tmp_path) as mock:
        mock.prompt("mock: say start", "mock: wait 600")
        mock.until_event("item.delta")
        mock.close_stdin()
        assert mock.ended() == ([], 0, "")
