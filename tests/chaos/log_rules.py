"""What must be true of the log of one session, whatever was killed meanwhile."""

import re
from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any

Event = dict[str, Any]
Rule = Callable[[list[Event]], list[str]]
_WORD = re.compile(r"w(\d+) ")
_ASKS = {"permission": "permission_id", "question": "question_id"}


_AFTERWARDS = {
    "session.info",
    "snapshot.created",
    "delivery.completed",
    "delivery.updated",
    "notice",
    "workspace.removed",
}


def numbered(events: list[Event]) -> list[str]:
    """Sequences are 1, 2, 3 ... without a gap."""
    found = [event["sequence"] for event in events]
    wrong = [pair for pair in enumerate(found, 1) if pair[0] != pair[1]]
    return [f"I1: event {wrong[0][0]} has the sequence {wrong[0][1]}"] if wrong else []


def turns_end_once(events: list[Event]) -> list[str]:
    """A turn has one start and one end, and there is one turn at a time."""
    problems: list[str] = []
    current: str | None = None
    known: set[str] = set()
    for event in events:
        turn = event["data"].get("turn_id")
        match event["type"]:
            case "turn.started":
                problems += [f"I6: turn {turn} began inside {current}"] if current else []
                problems += [f"I6: turn {turn} began twice"] if turn in known else []
                known.add(turn)
                current = turn
            case "turn.ended":
                problems += [f"I6: turn {turn} ended while {current} was under way"] if turn != current else []
                current = None
    return problems + ([f"I5: turn {current} never ended"] if current else [])


def ends_once(events: list[Event]) -> list[str]:
    """Nothing follows the end of a session but what becomes of its files and its name."""
    ends = [event["sequence"] for event in events if event["type"] == "session.ended"]
    later = [event["type"] for event in events if ends and event["sequence"] > ends[0]]
    after = [f"I6: {', '.join(odd)} after the end"] if (odd := set(later) - _AFTERWARDS) else []
    return after + (["I6: the session ended twice"] if len(ends) > 1 else [])


def items_are_whole(events: list[Event]) -> list[str]:
    """An item starts once, grows, completes once; its final text is the sum of its deltas."""
    state: dict[str, str] = {}
    grown: dict[str, list[str]] = {}
    problems: list[str] = []
    for event in events:
        kind, data = event["type"], event["data"]
        if not kind.startswith("item."):
            continue
        item = data["item_id"] if kind == "item.delta" else data["item"]["item_id"]
        expected = None if kind == "item.started" else "open"
        if state.get(item) != expected:
            problems.append(f"I8: {kind} of {item} at {event['sequence']}, which is {state.get(item, 'unknown')}")
        state[item] = "closed" if kind == "item.completed" else "open"
        if kind == "item.delta":
            grown.setdefault(item, []).append(data["delta"].get("text", ""))
        elif kind == "item.completed" and grown.get(item):
            problems += _differs(item, "".join(grown[item]), data["item"])
    return problems + [f"I5: {item} never completed" for item, at in state.items() if at == "open"]


def _differs(item: str, grown: str, final: Event) -> list[str]:
    texts = [part.get("text", "") for part in final["content"]]
    whole = "".join(texts)
    same = final["status"] == "failed" or whole == grown
    return [] if same else [f"I4: {item} grew to {grown[-60:]!r} and completed as {whole[-60:]!r}"]


def words_are_counted(events: list[Event]) -> list[str]:
    """The mock agent's numbered words come without gap and without repetition."""
    problems: list[str] = []
    for item, text in _texts(events).items():
        before = 0
        for word in map(int, _WORD.findall(text)):
            if word not in {before + 1, 1}:
                problems.append(f"I4: {item} goes from w{before} to w{word}")
            before = word
    return problems


def _texts(events: list[Event]) -> dict[str, str]:
    texts: dict[str, str] = {}
    for event in events:
        if event["type"] == "item.delta":
            item = event["data"]["item_id"]
            texts[item] = texts.get(item, "") + event["data"]["delta"].get("text", "")
    return texts


def asks_are_decided_once(events: list[Event]) -> list[str]:
    """An ask is asked once and decided once."""
    asked: Counter[str] = Counter()
    decided: Counter[str] = Counter()
    for event in events:
        kind, _, what = event["type"].partition(".")
        if kind in _ASKS and what in {"requested", "resolved"}:
            (asked if what == "requested" else decided)[event["data"][_ASKS[kind]]] += 1
    repeated = [f"I8: ask {ask} was asked {times} times" for ask, times in asked.items() if times > 1]
    again = [f"I8: ask {ask} was decided {times} times" for ask, times in decided.items() if times > 1]
    unknown = [f"I8: ask {ask} was decided but never asked" for ask in decided if ask not in asked]
    return repeated + again + unknown


def decisions_are_heard(events: list[Event]) -> list[str]:
    """What the log says was decided is what the agent heard: the mock agent says it in its next messages."""
    problems: list[str] = []
    for place, event in enumerate(events):
        kind, _, what = event["type"].partition(".")
        if kind not in _ASKS or what != "requested":
            continue
        ask, asked, decided = event["data"][_ASKS[kind]], _subject(event), None
        for later in events[place + 1 :]:
            if later["type"] == event["type"] and (kind == "question" or _subject(later) == asked):
                break  # what is said from now on is about that one
            if later["type"] == f"{kind}.resolved" and later["data"][_ASKS[kind]] == ask:
                decided = later["data"]
            elif (text := _spoken(later)) and (heard := _heard(kind, asked, text)):
                if not heard.startswith(expected := _expected(kind, decided)):
                    problems.append(f"I8: of ask {ask} the agent heard {heard!r}, the log says {expected!r}")
                break
    return problems


def _subject(event: Event) -> str:
    data = event["data"]
    return str(data["action"] if "action" in data else data["prompt"])


def _spoken(event: Event) -> str:
    item = event["data"].get("item", {}) if event["type"] == "item.completed" else {}
    is_whole = item.get("role") == "assistant" and item.get("kind") == "message" and item.get("status") != "failed"
    return "".join(part.get("text", "") for part in item["content"]) if is_whole else ""


def _heard(kind: str, asked: str, text: str) -> str:
    """What a message says about an ask, if anything."""
    if kind == "permission":
        found = re.search(rf"\b(Allowed|Rejected): {re.escape(asked)}(?![\w-])", text)
        return found[1] if found else ""
    found = re.search(rf"{re.escape(asked)} You answered: (.*)|(You declined to answer)", text)
    return (found[1] or found[2]) if found else ""


def _expected(kind: str, decided: Event | None) -> str:
    """What the agent says when it heard what the log says."""
    if decided is None:
        return "nothing yet"
    if kind == "permission":
        return "Rejected" if decided["status"] == "reject" else "Allowed"
    answers = decided.get("answers")
    return ", ".join(answers[0]) if answers else "You declined to answer"


def tools_answer_once(events: list[Event]) -> list[str]:
    """A tool call has at most one result."""
    parts = (part for item in completed(events) for part in item["content"] if part["type"] == "tool_result")
    results = Counter((part["call_id"]) for part in parts)
    starts = 1 + sum(event["type"] == "session.info" and "start" in event["data"] for event in events)
    # an agent that was started anew may count its calls from one again
    return [f"I8: call {call} has {times} results" for call, times in results.items() if times > starts]


def completed(events: Iterable[Event]) -> list[Event]:
    """The items as they completed."""
    return [event["data"]["item"] for event in events if event["type"] == "item.completed"]


RULES: tuple[Rule, ...] = (
    numbered,
    turns_end_once,
    ends_once,
    items_are_whole,
    words_are_counted,
    asks_are_decided_once,
    decisions_are_heard,
    tools_answer_once,
)


def broken(session: str, events: list[Event]) -> list[str]:
    """Every rule that this log breaks."""
    return [f"{session}: {problem}" for rule in RULES for problem in rule(events)]
