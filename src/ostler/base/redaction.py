"""Takes secrets out of text that people may read later: addresses, headers, known tokens."""

import re
from collections import OrderedDict
from collections.abc import Iterable
from threading import Lock

HIDDEN = "***"
_SHORTEST = 8
"""What is shorter is no secret, and would take ordinary words out of the log."""
_MOST_KNOWN = 4096
_LONGEST_LINE = 200
_URL = re.compile(
    r"(?P<scheme>\b[a-z][a-z0-9+.-]{1,20}://)(?:[^/?#\s'\"<>@]*@)*"
    r"(?P<host>[^/?#\s'\"<>]*)(?P<path>/[^?#\s'\"<>]*)?(?P<rest>[?#][^\s'\"<>]*)?",
    re.IGNORECASE,
)
_NAMED = re.compile(
    r"(?<![\w-])(?P<name>(?:proxy-)?authorization|set-cookie|cookie|[\w-]{0,40}(?:token|secret|password|passwd|api[_-]?key))"
    r"(?P<between>['\"]?\s{0,4}[,:=]\s{0,4}b?['\"]?)(?P<kind>(?:bearer|basic|token)\s+)?[^\s'\",;)}\]]+",
    re.IGNORECASE,
)
_BEARER = re.compile(r"\b(?P<kind>bearer|basic)\s+[A-Za-z0-9._~+/=-]{8,}", re.IGNORECASE)
_SHAPED = re.compile(
    r"\b(?:gh[pousr]_[A-Za-z0-9]{16,}|github_pat_\w{16,}|glpat-[\w-]{16,}|sk-[\w-]{16,}|xox[a-z]-[\w-]{10,}"
    r"|whsec_[A-Za-z0-9+/=]{16,}|AKIA[A-Z0-9]{12,}|AIza[\w-]{20,}|eyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]*)"
)
_PRIVATE_KEY = "PRIVATE KEY-----"


class Secrets:
    """Values that must never be seen; the newest few thousand are remembered."""

    def __init__(self) -> None:
        self._known: OrderedDict[str, None] = OrderedDict()
        self._lock = Lock()

    def add(self, values: Iterable[str | None]) -> None:
        """Remember values, the longest of which hide the shorter ones inside them."""
        with self._lock:
            for value in values:
                if value and len(value) >= _SHORTEST:
                    self._known[value] = None
                    self._known.move_to_end(value)
            while len(self._known) > _MOST_KNOWN:
                self._known.popitem(last=False)

    def hidden(self, text: str) -> str:
        """The text without them."""
        found = [value for value in tuple(self._known) if value in text]
        for value in sorted(found, key=len, reverse=True):
            text = text.replace(value, HIDDEN)
        return text


def redacted(text: str, secrets: Secrets, *, whole_paths: bool = False) -> str:
    """The text without secrets; `whole_paths` also keeps the paths of addresses, which may be secrets themselves."""
    text = secrets.hidden(text)
    text = _URL.sub(lambda found: _place(found, whole_paths=whole_paths), text)
    text = _NAMED.sub(lambda found: f"{found['name']}{found['between']}{found['kind'] or ''}{HIDDEN}", text)
    text = _BEARER.sub(lambda found: f"{found['kind']} {HIDDEN}", text)
    return _SHAPED.sub(HIDDEN, text)


def holds_secret(text: str) -> bool:
    """Whether a text has something of the shape of a credential in it."""
    return bool(_SHAPED.search(text) or _BEARER.search(text) or _PRIVATE_KEY in text)


def without_shaped(text: str) -> str:
    """The text without what has the shape of a credential; JSON stays JSON."""
    return _SHAPED.sub(HIDDEN, text)


def is_secret_name(name: str) -> bool:
    """Whether what has this name is better not shown."""
    return _NAMED.fullmatch(f"{name}=x") is not None


def _place(found: "re.Match[str]", *, whole_paths: bool) -> str:
    """An address without user, query and fragment."""
    path = found["path"] or ""
    if not whole_paths and len(path) > 1:
        path = f"/{HIDDEN}"
    rest = found["rest"]
    return f"{found['scheme']}{found['host']}{path}" + (f"{rest[0]}{HIDDEN}" if rest else "")


def printable(text: str, longest: int = _LONGEST_LINE) -> str:
    """What a stranger sent, as it can be stored and shown: a short line, without halves of characters."""
    return "".join(letter if letter.isprintable() else "\N{REPLACEMENT CHARACTER}" for letter in text[:longest])
