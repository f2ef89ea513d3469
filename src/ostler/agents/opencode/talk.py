"""The state of a dialogue with OpenCode, and what its requests and its events have to do with each other."""

from collections.abc import Callable, Sequence
from typing import Any
from urllib.parse import quote

import msgspec

from ostler.agents import say
from ostler.agents.adapter import Output, Send, Unreadable
from ostler.agents.opencode import asks, frames
from ostler.agents.opencode.turn import Turn
from ostler.wire.events import SessionInfoData
from ostler.wire.items import Item
from ostler.wire.running import AgentSpec, Draft

Body = msgspec.Raw
OK = range(200, 300)


class Talk:
    """One session on one server, with the sub-agents below it."""

    def __init__(self, spec: AgentSpec, mode: str | None) -> None:
        self.spec = spec
        self.mode = mode
        self.window: int | None = None
        """How much the model takes, if that is known."""
        self.session: str | None = None
        self.parents: dict[str, str | None] = {}
        """Sessions of ours -> the item of the call that started them."""
        self.turn: Turn | None = None
        self.roles: dict[str, str] = {}
        """Message -> user, assistant, or summary for what a compaction writes."""
        self.texts: dict[str, tuple[frames.Words, Item]] = {}
        self.tools: dict[str, frames.Tool] = {}
        """Calls that are not over, by OpenCode's id of the call."""
        self.printed: dict[str, str] = {}
        self.proposed: dict[str, str] = {}
        """The diff that was shown when permission for a call was asked."""
        self.announced: set[str] = set()
        self.written: dict[str, str] = {}
        """Documents as the model wrote them; one of them may be the plan."""
        self.held: dict[str, list[frames.PermissionAsked | frames.QuestionAsked]] = {}
        """Asks that came before the arguments of their call."""
        self.asks: dict[str, asks.Ask] = {}
        self._next = 0
        self._calls: dict[int, Callable[[int, Body], Sequence[Output]]] = {}

    def name(self, prefix: str, native: str) -> str:
        """An id that is unique in the session."""
        return f"{prefix}_{self.spec.start}_{native}"

    def request(
        self, handler: Callable[[int, Body], Sequence[Output]], method: str, path: str, body: Any = None
    ) -> Send:
        """A request; `handler` gets the response."""
        self._next += 1
        self._calls[self._next] = handler
        full = f"{path}?directory={quote(self.spec.cwd, safe='')}"
        return Send(msgspec.json.encode({"id": self._next, "method": method, "path": full, "body": body}))

    def abort_at_the_end(self) -> Send:
        """What a shared server is asked when this process has ended: nobody else would end the turn then."""
        path = f"/session/{self.session}/abort?directory={quote(self.spec.cwd, safe='')}"
        return Send(msgspec.json.encode({"id": 0, "method": "LAST", "path": path}))

    def respond(self, request_id: int, status: int, body: Body) -> Sequence[Output]:
        """The response to a request."""
        handler = self._calls.pop(request_id, None)
        if handler is None:
            raise Unreadable(f"No request {request_id} is open", "$.response")
        return handler(status, body)

    def abort(self, turn: Turn) -> Send:
        """End what the session does."""
        turn.aborting = True
        return self.request(self._on_aborted, "POST", f"/session/{self.session}/abort")

    def _on_aborted(self, status: int, body: Body) -> Sequence[Output]:
        if self.turn is None:
            return ()
        self.turn.aborting = False
        if status in OK:
            return self.settle()
        refused = f"OpenCode did not abort: {reason(status, body)}"
        return say.notice(refused, "abort_failed"), *self.settle()

    def _withdraw(self, message: str, text: str) -> Send:
        """Take a message out of the conversation, in which the next turn would find it."""

        def on_withdrawn(status: int, body: Body) -> Sequence[Output]:
            if self.turn is None:
                return ()
            self.turn.withdrawing -= 1
            failed = f"OpenCode did not take the message back: {reason(status, body)}" if status not in OK else None
            notice = say.unheard(text) if failed is None else say.notice(failed, "withdraw_failed")
            return notice, *self.settle()

        return self.request(on_withdrawn, "DELETE", f"/session/{self.session}/message/{quote(message, safe='')}")

    def switch_mode(self, mode: str) -> list[Output]:
        """The session works in another mode from now on."""
        if mode == (self.mode or "build"):
            return []
        self.mode = mode
        return [Draft("session.info", SessionInfoData(mode=mode))]

    def settle(self) -> list[Output]:
        """End the turn if it is over."""
        if self.turn is None or not self.turn.is_over():
            return []
        if unread := self.turn.take_unread():
            self.turn.withdrawing = len(unread)
            return [self._withdraw(message, text) for message, text in unread]
        turn, self.turn = self.turn, None
        for collection in (self.texts, self.tools, self.printed, self.proposed, self.announced, self.held, self.asks):
            collection.clear()
        return [turn.end()]


def reason(status: int, body: Body) -> str:
    """The words in an error response, whatever its shape."""
    found = msgspec.json.decode(body)
    if isinstance(found, dict):
        data = found.get("data")
        words = data.get("message") if isinstance(data, dict) else found.get("message")
        found = words or found.get("name") or found
    return f"{found} (status {status})"
