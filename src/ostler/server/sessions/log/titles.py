"""What a session is called: the first sentence of what was asked, then as the agent says, unless a person chose."""

import re

from msgspec.structs import replace

from ostler.wire.events import SessionInfoData
from ostler.wire.running import Draft

_LONGEST = 72
_LONGEST_CHOSEN = 200
_JOINERS = frozenset("\u200c\u200d")
"""They print nothing, but letters and pictures are made of them."""
_LOOKED_AT = 10_000
_FENCED = re.compile(r"```.*?(```|\Z)", re.DOTALL)
_MARK = re.compile(r"^(#{1,6}|[-*+>]|\d{1,3}[.)])\s+")
_POLITE = re.compile(
    r"^((hi|hello|hey|please|now|ok|okay|so)\b[,.!: ]+|((can|could|would|will) you|i('d| would) like you to|"
    r"i (want|need) you to)( please)?\s+)+",
    re.IGNORECASE,
)
_END = re.compile(r"(?<=[^\s.])[.!?](?=\s|$)")
_FORK = re.compile(r"Fork(?: (\d+))? of ")


def title_of(prompt: str) -> str | None:
    """A title from the text of a prompt; None if it has no words."""
    prompt = prompt[:_LOOKED_AT]
    lines = (_MARK.sub("", line.strip()) for line in _FENCED.sub("\n", prompt).splitlines())
    line = " ".join(next(filter(None, lines), prompt.strip("`\n ")).split())
    wanted = _POLITE.sub("", line)
    says_more = wanted != line and " " in wanted  # of "Hello there" only "there" would be left
    sentence = _END.split(wanted if says_more else line, maxsplit=1)[0].rstrip(":,; ")
    if not sentence:
        return None
    return _cut(sentence if sentence == line[: len(sentence)] else sentence[0].upper() + sentence[1:])


def _cut(title: str) -> str:
    """At most so long, and not in the middle of a word."""
    if len(title) <= _LONGEST:
        return title
    head = title[:_LONGEST]
    return f"{(head.rpartition(' ')[0] if ' ' in head[_LONGEST // 2 :] else head[:-1]).rstrip(',;:- ')}…"


def in_one_line(title: str) -> str:
    """A title that somebody chose, as it can be shown anywhere: one line, nothing invisible, and not without end."""
    shown = (letter if letter.isprintable() or letter in _JOINERS else " " for letter in title[:_LOOKED_AT])
    line = " ".join("".join(shown).split())
    return line if len(line) <= _LONGEST_CHOSEN else f"{line[: _LONGEST_CHOSEN - 1].rstrip()}…"


def fork_title(parent: str) -> str:
    """A title that is told from its parent's at its first word, also where only the beginning is shown."""
    known = _FORK.match(parent)
    if known is None:
        return f"Fork of {parent}"
    return f"Fork {int(known[1] or 1) + 1} of {parent[known.end() :]}"


def left_to_people(draft: Draft) -> Draft:
    """What an agent tells, without the title that it would give: a person has chosen one."""
    if draft.source != "agent" or not isinstance(draft.data, SessionInfoData) or draft.data.title is None:
        return draft
    return replace(draft, data=replace(draft.data, title=None))
