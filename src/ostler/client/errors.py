"""What can go wrong between a client and a server."""

from ostler import __version__
from ostler.base.versions import apart
from ostler.wire.problems import Problem


class ClientError(Exception):
    """Base of everything the SDK raises on purpose."""


class OstlerApiError(ClientError):
    """The server answered with a problem."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem.detail)
        self.problem = problem

    @property
    def status(self) -> int:
        """The HTTP status."""
        return self.problem.status

    @property
    def code(self) -> str:
        """The stable code that programs compare."""
        return self.problem.code

    @property
    def detail(self) -> str:
        """What happened, for people."""
        return self.problem.detail

    @property
    def errors(self) -> dict[str, list[str]]:
        """For bad input: what is wrong with each field."""
        return self.problem.errors or {}


class ServerUnreachable(ClientError):
    """Nobody listens at the address."""

    def __init__(self, address: str) -> None:
        super().__init__(f"No Ostler server answers at {address}. Start one with `ostler serve`.")
        self.address = address


class BadAddress(ClientError):
    """What was given as the address of a server is none."""

    def __init__(self, address: str, reason: str) -> None:
        super().__init__(f"'{address[:200]}' is not an address: {reason}. Give one such as http://127.0.0.1:2468.")
        self.address = address


class BadToken(ClientError):
    """A token that no server could be sent; the message never has it."""

    def __init__(self) -> None:
        super().__init__(
            "The token has a line break, or a character that no token has. Copy it again, without what is around it."
        )


class TokenExposed(ClientError):
    """The token would be sent where others can read it on its way."""

    def __init__(self, address: str) -> None:
        super().__init__(
            f"The token was not sent to {address}: without TLS everybody on the way could read it. Use an address that "
            "begins with https://, or accept the risk with --insecure or OSTLER_INSECURE=1 (in Python: insecure=True)."
        )
        self.address = address


class NotTrusted(ServerUnreachable):
    """The certificate of the server is not one to trust."""

    def __init__(self, address: str, reason: str) -> None:
        super().__init__(address)
        start = reason if "://" in reason.partition(" ")[0] else f"{reason[:1].upper()}{reason[1:]}"
        self.args = (f"{start}.",)


class ConnectionLost(ClientError):
    """The connection broke before the answer was complete."""

    def __init__(self, address: str, reason: str) -> None:
        super().__init__(f"The connection to {address} broke: {reason.rstrip('.') or 'it was closed'}.")
        self.address = address


class NoAnswer(ClientError):
    """The server took the request and stayed silent."""

    def __init__(self, address: str) -> None:
        super().__init__(f"The server at {address} did not answer in time.")
        self.address = address


class BadAnswer(ClientError):
    """Something answered that does not speak Ostler's API."""

    def __init__(self, reason: str, server_version: str | None = None) -> None:
        hint = apart(__version__, server_version) or " Is this an Ostler server of a matching version?"
        super().__init__(f"The answer makes no sense: {reason}.{hint}")


class BadName(ClientError):
    """An id that could never be part of an address."""

    def __init__(self, value: str) -> None:
        super().__init__(f"'{value}' cannot be an id.")


class MissingEvents(ClientError):
    """The log has a hole; final once reading it again did not help."""

    def __init__(self, *, expected: int, found: int, final: bool) -> None:
        super().__init__(f"Event {expected} is missing: the server sent {found} instead.")
        self.expected = expected
        self.found = found
        self.final = final


class TurnTimeout(ClientError, TimeoutError):
    """The time to wait for a turn is over; the turn goes on."""

    def __init__(self, seconds: float) -> None:
        super().__init__(f"The turn was not over after {seconds:g} seconds. It goes on: wait again, or interrupt it.")
        self.seconds = seconds


class QuestionUnanswered(ClientError):
    """The agent asks something, and there is no function that answers."""

    def __init__(self, question_id: str, prompt: str, tool: str | None = None) -> None:
        asks, missing = f"asks '{prompt}'", "on_question"
        if tool is not None:
            asks, missing = f"calls the client's tool '{tool}'", f"tools={{'{tool}': ...}}"
        super().__init__(
            f"The agent {asks} and nothing answers. Give {missing} to run() or wait(), or answer question "
            f"'{question_id}' and wait again."
        )
        self.question_id = question_id
