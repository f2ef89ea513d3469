"""What the mock agent does with an ordinary prompt: look around, answer kindly, say how to see more."""

from pathlib import Path

from ostler.programs.mock.files import write_file
from ostler.programs.mock.talk import report_usage, show_plan
from ostler.programs.mock.turn import Turn

WORDS_PER_SECOND = 60
SHOWN_ENTRIES = 20
NOTE = "hello-from-mock.md"


def demo(turn: Turn, _: str) -> None:
    """One short, complete turn with a bit of everything."""
    wish = _short(turn.text)
    steps = ["Look at the folder", *(["Write a small file"] if _wants_file(turn.text) else []), "Answer"]
    turn.think("Let me see what is here before I answer.", WORDS_PER_SECOND)
    show_plan(turn, steps, done=0)
    names = _look(turn)
    if _wants_file(turn.text):
        show_plan(turn, steps, done=1)
        _write_note(turn, wish)
    show_plan(turn, steps, done=len(steps) - 1)
    answer = _answer(wish, names)
    turn.say(answer, WORDS_PER_SECOND)
    turn.end_message()
    show_plan(turn, steps, done=len(steps))
    report_usage(turn, 400 + len(turn.text) // 4, len(answer) // 4, 0.0)


def _wants_file(text: str) -> bool:
    words = text.lower()
    return "write" in words or ("create" in words and "file" in words)


def _look(turn: Turn) -> list[str]:
    tool = turn.start_tool("list_files", {"path": "."})
    try:
        names = sorted(f"{entry.name}/" if entry.is_dir() else entry.name for entry in Path().iterdir())
    except OSError as problem:
        turn.end_tool(tool, str(problem), ok=False)
        return []
    more = [f"... and {len(names) - SHOWN_ENTRIES} more"] if len(names) > SHOWN_ENTRIES else []
    turn.pause(0.2)
    turn.end_tool(tool, "\n".join(names[:SHOWN_ENTRIES] + more) or "(empty)")
    return names


def _write_note(turn: Turn, wish: str) -> None:
    if not turn.options.may_write():
        turn.say("I am in plan mode, so I leave the files as they are.", WORDS_PER_SECOND)
        return
    allowed, message = turn.ask_permission(f"Write {NOTE}", "write")
    if allowed:
        write_file(turn, NOTE, f"# Hello from the mock agent\n\nYou asked: {wish}\n")
    else:
        turn.say(f"Fine, I will not write {NOTE}." + (f" You said: {message}" if message else ""), WORDS_PER_SECOND)


def _answer(wish: str, names: list[str]) -> str:
    echo = f'You said: "{wish}".' if wish else "You sent an empty prompt."
    return (
        f"Hello! {echo} {_seen(names)}\n\n"
        "I am the mock agent. There is no model behind me, so this answer is made of fixed sentences, but it reached "
        "you the way a real agent's answer does. A prompt can also tell me exactly what to do, for example:\n\n"
        "    mock: run ls -l\n"
        "    mock: question Tea or coffee? | tea | coffee\n"
    )


def _seen(names: list[str]) -> str:
    match names:
        case []:
            return "This folder is empty."
        case [name]:
            return f"The only thing in this folder is {name}."
        case _:
            return f"There are {len(names)} things in this folder, {names[0]} and {names[-1]} among them."


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= 120 else f"{line[:117]}..."
