"""The mock agent's main loop and the table of everything a prompt can tell it to do."""

from collections import deque
from collections.abc import Callable

from ostler.programs.mock import demo, faults, files, processes, talk
from ostler.programs.mock.channel import Frame
from ostler.programs.mock.turn import Agent, BadDirective, EndOfTurn, Failed, Interrupted, Limited, Turn

PREFIX = "mock:"

DIRECTIVES: dict[str, tuple[Callable[[Turn, str], None], str]] = {
    "say": (talk.say, "say Hello there."),
    "stream": (talk.stream, "stream 500 words 100/s"),
    "think": (talk.think, "think What could this be?"),
    "tool": (talk.tool, 'tool search {"query": "ostler"} -> 3 results'),
    "fail-tool": (talk.fail_tool, 'fail-tool search {"query": "ostler"} -> no connection'),
    "type-tool": (talk.type_tool, 'type-tool search {"query": "ostler"} -> 3 results'),
    "run": (processes.run, "run ls -l"),
    "terminal": (talk.terminal, "terminal compiling..."),
    "write": (files.write, r"write notes.md # Notes\nFirst line\n"),
    "edit": (files.edit, "edit notes.md First -> Second"),
    "permission": (talk.permission, "permission delete the old notes"),
    "question": (talk.question, "question Tea or coffee? | tea | coffee"),
    "multi-select": (talk.multi_select, "multi-select Which fruit? | apple | pear | plum"),
    "questions": (talk.questions, "questions Which size? | S | M ;; *Which extras? | milk | sugar"),
    "plan": (talk.plan, "plan Read the code | Change it | Test it"),
    "usage": (talk.usage, "usage 1200 300 0.02"),
    "title": (talk.title, "title Tidy the notes"),
    "recall": (talk.recall, "recall"),
    "about": (talk.about, "about"),
    "instructions": (talk.instructions, "instructions"),
    "env": (talk.env, "env HOME"),
    "pwd": (talk.pwd, "pwd"),
    "demo": (demo.demo, "demo"),
    "wait": (talk.wait, "wait 2.5"),
    "error": (talk.fail, "error The model is overloaded"),
    "limit": (faults.limit, "limit 30"),
    "stderr": (faults.stderr, "stderr 100"),
    "crash": (faults.crash, "crash 3"),
    "hang": (faults.hang, "hang I am stuck"),
    "ignore-signals": (processes.ignore_signals, "ignore-signals"),
    "garbage": (faults.garbage, "garbage"),
    "flood": (faults.flood, "flood 10m"),
    "bigframe": (faults.bigframe, "bigframe 1m"),
    "grandchild": (processes.grandchild, "grandchild setsid"),
}
"""Name -> what it does and an example."""


def serve(agent: Agent) -> None:
    """Work through prompts until stdin ends, which ends the process."""
    while True:
        frame = (agent.waiting.popleft() if agent.waiting else agent.channel.receive(None)) or {}
        if frame.get("type") == "prompt":
            _work(agent, frame)
        elif frame.get("type") == "steer":
            agent.heard.append(str(frame.get("text") or ""))  # too late for its turn; the next one takes it up
        elif frame.get("type") == "interrupt":
            agent.forget_heard()


def _work(agent: Agent, prompt: Frame) -> None:
    turn = Turn(agent, prompt)
    agent.memory.remember(turn.text)
    try:
        _mention_attachments(turn)
        _follow(turn, deque(_directives(turn.text) or ["demo"]))
    except Interrupted:
        agent.forget_heard()
        turn.end("interrupted", "interrupt")
    except Failed as failure:
        turn.end_message()
        turn.send("error", message=str(failure), resets_at=failure.ends if isinstance(failure, Limited) else None)
        turn.end("failed", "error")
    except EndOfTurn:
        turn.end("completed", "end_turn")
    else:
        turn.end("completed", "end_turn")


def _follow(turn: Turn, lines: deque[str]) -> None:
    while True:
        turn.pause(0)
        while turn.agent.heard:
            lines.extend(_steered(turn, turn.agent.heard.pop(0)))
        if not lines:
            return
        _run(turn, lines.popleft())


def _directives(text: str) -> list[str]:
    lines = (line.strip() for line in text.splitlines())
    return [line.removeprefix(PREFIX).strip() for line in lines if line.startswith(PREFIX)]


def _steered(turn: Turn, text: str) -> list[str]:
    lines = _directives(text)
    if not lines:
        turn.say(f'You added: "{text}".')
    return lines


def _run(turn: Turn, line: str) -> None:
    name, _, rest = line.partition(" ")
    work, example = DIRECTIVES.get(name, (_unknown, "say Hello there."))
    try:
        work(turn, rest.strip())
    except BadDirective as problem:
        turn.say(f"I cannot follow '{PREFIX} {line}'. {problem} Example: {PREFIX} {example}")
        raise EndOfTurn from None


def _unknown(_turn: Turn, _rest: str) -> None:
    raise BadDirective(f"I know these directives: {', '.join(DIRECTIVES)}.")


def _mention_attachments(turn: Turn) -> None:
    counts = [(len(turn.images), "image"), (len(turn.files), "file")]
    got = [f"{count} {what}{'s' if count > 1 else ''}" for count, what in counts if count]
    if got:
        turn.say(f"I got {' and '.join(got)}.")
