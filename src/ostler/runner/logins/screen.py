"""What a login command has printed: the address and the code in it. It holds secrets, is never logged and is short."""

import re

from ostler.runner.processes.logins import hidden_text

_MOST = 2**16
_LONGEST_MESSAGE = 300
_ESCAPES = re.compile(
    r"\x1b(?:\][^\x07\x1b]*(?:\x07|\x1b\\)|[\[\x9b][0-?]*[ -/]*[@-~]|[PX^_][^\x1b]*\x1b\\|[()#][0-9A-Za-z]|[ -~])"
)
_LINKS = re.compile(r"\x1b\]8;[^;]*;(https?://[^\x07\x1b]+)(?:\x07|\x1b\\)")
_ADDRESS = re.compile(r"https?://[^\s\"'<>\x00-\x1f]+")
_CODE = re.compile(r"(?<![\w/=&?.-])[A-Z0-9]{3,8}(?:-[A-Z0-9]{3,8}){1,3}(?![\w-])")
_UNPRINTED = re.compile(r"[\x00-\x09\x0b-\x1f\x7f]")


class Screen:
    """The last of what was printed."""

    def __init__(self) -> None:
        self._text = ""
        self._hidden: list[str] = []

    def hide(self, secret: str) -> None:
        """Keep what was typed out of the last words."""
        self._hidden.append(secret)

    def feed(self, chunk: bytes) -> None:
        """Take more of it."""
        self._text = (self._text + chunk.decode(errors="replace"))[-_MOST:]

    @property
    def _plain(self) -> str:
        return _UNPRINTED.sub("", _ESCAPES.sub("", self._text).replace("\r\n", "\n").replace("\r", "\n"))

    @property
    def url(self) -> str | None:
        """The last address; one that is a link under other words counts too."""
        found = _ADDRESS.findall(self._plain) or _LINKS.findall(self._text)
        return found[-1].rstrip(".,;:)]}") if found else None

    @property
    def code(self) -> str | None:
        """The last thing that looks like a code to enter."""
        found = _CODE.findall(_ADDRESS.sub(" ", self._plain))
        return found[-1] if found else None

    @property
    def asks(self) -> bool:
        """Whether it stands behind a question: a line that is not ended."""
        return bool(self._plain.rpartition("\n")[2].strip())

    def has(self, words: str) -> bool:
        """Whether these words were printed."""
        return words in self._plain

    def last_line(self) -> str:
        """The last words, without secrets."""
        lines = [line.strip() for line in self._plain.splitlines() if line.strip()]
        return self.without_secrets(lines[-1]) if lines else ""

    def without_secrets(self, words: str) -> str:
        """Words that may be told."""
        for secret in self._hidden:
            words = words.replace(secret, "[hidden]")
        return hidden_text(words)[:_LONGEST_MESSAGE]
