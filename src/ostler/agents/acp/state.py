"""What the dialogue with one ACP process remembers, and the few things that several of its messages lead to."""

from typing import Any, TypeVar

from ostler.agents import say
from ostler.agents.acp.asks import Ask
from ostler.agents.acp.frames import AgentCapabilities, SessionOpened
from ostler.agents.acp.messages import Messages, Spent
from ostler.agents.acp.profile import Profile
from ostler.agents.acp.tools import ToolCalls
from ostler.agents.adapter import Output, Send
from ostler.agents.jsonrpc import Calls, Incoming
from ostler.wire.events import SessionInfoData
from ostler.wire.running import AgentSpec, Draft

T = TypeVar("T")


class AcpState:
    """One process and the one session on it."""

    def __init__(self, profile: Profile, spec: AgentSpec) -> None:
        self.profile = profile
        self.spec = spec
        self.rpc = Calls()
        self.tools = ToolCalls(spec.start, profile)
        self.messages = Messages(spec.start)
        self.spent = Spent()
        self.can = AgentCapabilities()
        self.version: str | None = None
        self.session_id: str | None = None
        self.resumed = False
        self.opened = SessionOpened()
        self.unset = 0
        """Requests of the handshake that are not answered yet."""
        self.talks = False
        """Whether a prompt was sent; what comes before it is history sent again."""
        self.tells_history = False
        """Whether history came since we last asked if it is over."""
        self.interrupted = False
        self.open_asks: dict[str, Ask] = {}
        self.steered: list[str] = []
        """What people added to this turn, until the agent fetches it."""
        self.reasons: list[str] = []
        """Why people rejected something; an agent that fetches these may still end its turn without reading them."""
        self._asked = 0

    def number(self) -> str:
        """The next ask's id, without what kind it is."""
        self._asked += 1
        return f"{self.spec.start}_{self._asked}"

    def ask(self, ask: Ask) -> list[Output]:
        """Show an ask and remember it."""
        self.open_asks[ask.ask_id] = ask
        return [ask.requested]

    def again(self) -> Send:
        """Tell the agent within the same turn what it has not heard yet."""
        text = "\n".join([*self.reasons, *self.steered])
        self.hush()
        return self.say([{"type": "text", "text": text}])

    def hush(self) -> None:
        """Forget what the agent has not heard yet."""
        self.reasons.clear()
        self.steered.clear()

    def end_turn(self) -> None:
        """Forget what was open; the guard closes it."""
        self.tools.forget()
        self.open_asks.clear()

    def say(self, blocks: list[dict[str, Any]]) -> Send:
        """A prompt."""
        return self.rpc.request("session/prompt", {"sessionId": self.session_id, "prompt": blocks})


def mode_is(mode: str) -> Draft:
    """The agent's mode is known."""
    return Draft("session.info", SessionInfoData(mode=mode))


def params(message: Incoming, kind: type[T]) -> T:
    """What a request or a notification says."""
    return say.read(message.params, kind, "$.params")


def result(message: Incoming, kind: type[T]) -> T:
    """What a response says."""
    return say.read(message.result, kind, "$.result")
