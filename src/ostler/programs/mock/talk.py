"""Directives of the mock agent that talk: text, thoughts, tools in name only, asks, plans, numbers."""

import json
import os
from pathlib import Path

from ostler.programs.mock.channel import Frame
from ostler.programs.mock.turn import BadDirective, EndOfTurn, Failed, Turn


def unescape(text: str) -> str:
    """A directive is one line, so a line end inside it is written as backslash and n."""
    return text.replace("\\n", "\n")


def needed(text: str, what: str) -> str:
    """The text, which must not be empty."""
    if not text:
        raise BadDirective(f"It needs {what}.")
    return text


def number(text: str, what: str) -> float:
    """A number that is not negative."""
    try:
        value = float(text)
    except ValueError:
        raise BadDirective(f"'{text}' is not {what}.") from None
    if not 0 <= value < 1e12:
        raise BadDirective(f"'{text}' is not {what}.")
    return value


def say(turn: Turn, text: str) -> None:
    """Stream the text, one delta per word."""
    turn.say(unescape(needed(text, "a text")))


def think(turn: Turn, text: str) -> None:
    """Think the text aloud."""
    turn.think(unescape(needed(text, "a text")))


def stream(turn: Turn, text: str) -> None:
    """Stream numbered words at a rate, so that a lost one is noticed."""
    match text.split():
        case [count, "words"]:
            rate = "max"
        case [count, "words", rate]:
            pass
        case _:
            raise BadDirective("It needs a number of words and a rate.")
    per_second = 0 if rate == "max" else number(rate.removesuffix("/s"), "a rate like 100/s")
    total = int(number(count, "a number of words"))
    turn.stream((f"w{index} " for index in range(1, total + 1)), per_second)


def tool(turn: Turn, text: str) -> None:
    """Pretend to call a tool that works."""
    _pretend(turn, text, ok=True)


def fail_tool(turn: Turn, text: str) -> None:
    """Pretend to call a tool that fails."""
    _pretend(turn, text, ok=False)


def type_tool(turn: Turn, text: str) -> None:
    """Pretend to call a tool that works, and write its input piece by piece."""
    _pretend(turn, text, ok=True, typed=True)


def _pretend(turn: Turn, text: str, *, ok: bool, typed: bool = False) -> None:
    call, _, output = text.partition("->")
    name, _, given = call.strip().partition(" ")
    start = turn.type_tool if typed else turn.start_tool
    call_id = start(needed(name, "a tool's name"), _arguments(given.strip()))
    turn.pause(0)
    turn.end_tool(call_id, unescape(output.strip()), ok=ok)


def _arguments(text: str) -> object:
    try:
        return json.loads(text or "{}")
    except ValueError:
        raise BadDirective(f"'{text}' is not JSON.") from None


def terminal(turn: Turn, text: str) -> None:
    """Show terminal output that belongs to no tool."""
    turn.send("tool_output", id=None, stream="stdout", data=unescape(text) + "\n")


def permission(turn: Turn, action: str) -> None:
    """Ask before doing something; a rejection ends the turn."""
    allowed, message = turn.ask_permission(needed(action, "an action"))
    if allowed:
        turn.say(f"Allowed: {action}")
    else:
        turn.say(f"Rejected: {action}" + (f" ({message})" if message else ""))
        raise EndOfTurn


def question(turn: Turn, text: str) -> None:
    """Ask one question with one answer."""
    _ask(turn, [_question(text, multi_select=False)])


def multi_select(turn: Turn, text: str) -> None:
    """Ask one question with any number of answers."""
    _ask(turn, [_question(text, multi_select=True)])


def questions(turn: Turn, text: str) -> None:
    """Ask several questions at once; a leading star allows several answers."""
    asked = [part.strip() for part in text.split(";;")]
    _ask(turn, [_question(part.removeprefix("*"), multi_select=part.startswith("*")) for part in asked])


def _question(text: str, *, multi_select: bool) -> Frame:
    prompt, *options = (part.strip() for part in text.split("|"))
    return {
        "question": needed(prompt, "a question"),
        "options": [{"label": option} for option in options],
        "multi_select": multi_select,
        "free_text": not options,
    }


def _ask(turn: Turn, asked: list[Frame]) -> None:
    answers, message = turn.ask_questions(asked)
    if answers is None:
        turn.say("You declined to answer" + (f": {message}" if message else "."))
        return
    for entry, answer in zip(asked, answers, strict=False):
        turn.say(f"{entry['question']} You answered: {', '.join(answer)}")


def plan(turn: Turn, text: str) -> None:
    """Show a plan whose first step is under way."""
    steps = [step.strip() for step in needed(text, "at least one step").split("|")]
    show_plan(turn, steps, done=0)


def show_plan(turn: Turn, steps: list[str], *, done: int) -> None:
    """Send the whole plan with so many steps behind us."""
    status = ["completed"] * done + ["in_progress"] + ["pending"] * len(steps)
    turn.send("plan", entries=[{"content": step, "status": status[index]} for index, step in enumerate(steps)])


def usage(turn: Turn, text: str) -> None:
    """Report tokens and cost."""
    match text.split():
        case [given, made, *cost] if len(cost) <= 1:
            report_usage(turn, int(number(given, "a number")), int(number(made, "a number")), _cost(cost))
        case _:
            raise BadDirective("It needs input tokens, output tokens and perhaps a cost.")


def _cost(given: list[str]) -> float | None:
    return number(given[0], "a cost") if given else None


def report_usage(turn: Turn, given: int, made: int, cost: float | None) -> None:
    """Send tokens and cost of this turn."""
    turn.send("usage", input=given, output=made, cost=cost, context_used=given + made, context_window=200_000)


def title(turn: Turn, text: str) -> None:
    """Name the session."""
    turn.send("title", title=needed(text, "a title"))


def fail(turn: Turn, text: str) -> None:
    """Fail the turn; the process goes on."""
    raise Failed(needed(text, "a message"))


def recall(turn: Turn, _: str) -> None:
    """Tell how many user turns are remembered."""
    turns = turn.agent.memory.turns
    turn.say(f"I remember {len(turns)} user turn{'s' if len(turns) != 1 else ''}, this one included.")


def env(turn: Turn, name: str) -> None:
    """Tell the value of an environment variable."""
    value = os.environ.get(needed(name, "a variable's name"))
    turn.say(f"{name} is not set." if value is None else f"{name}={value}")


def pwd(turn: Turn, _: str) -> None:
    """Tell the working folder."""
    turn.say(os.getcwd())  # noqa: PTH109 - the plain name is wanted


def about(turn: Turn, _: str) -> None:
    """Tell how the agent was started."""
    chosen = turn.options
    turn.say(
        f"session {turn.agent.memory.session}, model {chosen.model}, variant {chosen.variant}, "
        f"mode {chosen.mode}, permission mode {chosen.permission_mode}"
    )


def instructions(turn: Turn, _: str) -> None:
    """Tell the instructions of the session."""
    path = turn.options.instructions
    turn.say("I have no instructions." if path is None else Path(path).read_text(encoding="utf-8"))


def wait(turn: Turn, text: str) -> None:
    """Do nothing for a while, or until somebody adds something to the turn, but obey an interrupt."""
    if text == "until told":
        turn.pause_until_steered()
    else:
        turn.pause(number(text, "a number of seconds"))
