"""How Codex is logged in: its app server shows an address and a code, and says when somebody has entered it."""

from collections.abc import Sequence
from typing import Any

import msgspec

from ostler import __version__
from ostler.agents import say
from ostler.agents.adapter import LoginOutput, Over, Shown, Unreadable
from ostler.agents.codex.thread import Frame
from ostler.agents.jsonrpc import Calls, Incoming, read

_NOT_OFFERED = -32601
_START, _COMPLETED, _CANCEL = "account/login/start", "account/login/completed", "account/login/cancel"


class Started(Frame, frozen=True, kw_only=True):
    """What a person has to do."""

    login_id: str
    verification_url: str
    user_code: str


class Completed(Frame, frozen=True, kw_only=True):
    """How it ended."""

    success: bool
    login_id: str | None = None
    error: str | None = None


_started = msgspec.json.Decoder(Started)
_completed = msgspec.json.Decoder(Completed)


class CodexLogin:
    """Implements LoginTalk: a device code of ChatGPT."""

    prints_for_people = False

    def __init__(self, _: str | None = None) -> None:
        self._calls = Calls(member=False)
        self._login_id: str | None = None

    def open(self) -> Sequence[LoginOutput]:
        """Greet it."""
        client = {"name": "ostler", "title": "Ostler", "version": __version__}
        return (self._calls.request("initialize", {"clientInfo": client}),)

    def feed(self, frame: bytes) -> Sequence[LoginOutput]:
        """Take one message."""
        message = read(frame)
        match message.kind:
            case "response":
                return self._answered(message)
            case "request":
                return (self._calls.refuse(message.id or "", _NOT_OFFERED, "Not while it is logged in."),)
            case "notification":
                return self._ended(message.params) if message.method == _COMPLETED else ()

    def answer(self, code: str) -> Sequence[LoginOutput]:
        """The code is entered on the page, nothing comes back here."""
        del code
        return ()

    def cancel(self) -> Sequence[LoginOutput]:
        """Tell it that nobody will come."""
        return () if self._login_id is None else (self._calls.request(_CANCEL, {"loginId": self._login_id}),)

    def _answered(self, message: Incoming) -> Sequence[LoginOutput]:
        method = self._calls.settle(message)
        if message.error is not None:
            return (Over(message.error.message),)
        if method == "initialize":
            start: dict[str, Any] = {"type": "chatgptDeviceCode"}
            return self._calls.notify("initialized", {}), self._calls.request(_START, start)
        if method != _START:
            return ()
        try:
            started = say.read(message.result, _started)
        except Unreadable:
            return (Over("This version of Codex logs in in a way that Ostler does not know."),)
        self._login_id = started.login_id
        return (Shown(text=f"{started.verification_url}\n{started.user_code}"),)

    def _ended(self, params: msgspec.Raw) -> Sequence[LoginOutput]:
        completed = say.read(params, _completed)
        if self._login_id is None or completed.login_id not in {None, self._login_id}:
            return ()
        return (Over(None if completed.success else completed.error or "Codex does not say why."),)
