"""How an ACP agent is logged in: the ways it tells when it is greeted, and one of them gone to its end."""

from collections.abc import Sequence
from typing import Any

import msgspec

from ostler.agents.acp.errors import described
from ostler.agents.acp.frames import Frame
from ostler.agents.acp.session import GREETING
from ostler.agents.adapter import LoginOutput, Over, Send, Shown, Way, Ways
from ostler.agents.jsonrpc import Calls, Incoming, read

_NOT_OFFERED = -32601
_LONGEST_TEXT = 200
_MOST = 20
_CAPABILITIES: dict[str, Any] = {
    **GREETING["clientCapabilities"],
    "auth": {"terminal": True},
    "_meta": {"terminal-auth": True},
}
_LOGIN_GREETING = {**GREETING, "clientCapabilities": _CAPABILITIES}
"""A person is there, and so is a terminal."""


class Variable(Frame, frozen=True, kw_only=True):
    """A variable that hands over a key."""

    name: str


class Method(Frame, frozen=True, kw_only=True):
    """One entry of `authMethods`."""

    id: str
    name: str = ""
    description: str | None = None
    type: str | None = None
    args: tuple[str, ...] = ()
    env: dict[str, str] | None = None
    vars: tuple[Variable, ...] = ()
    meta: dict[str, Any] | None = msgspec.field(default=None, name="_meta")


class Greeted(Frame, frozen=True, kw_only=True):
    """The part of the answer to `initialize` that is about logins."""

    auth_methods: tuple[Any, ...] | None = None


class Elicitation(Frame, frozen=True, kw_only=True):
    """Something that the agent wants of a person on the way."""

    mode: str = "form"
    message: str = ""
    url: str = ""
    requested_schema: dict[str, Any] | None = None


class AcpLogin:
    """Implements LoginTalk; without a way it only asks which there are."""

    prints_for_people = True
    """Most agents print the address, on either of their outputs."""

    def __init__(self, way: str | None = None, unusable: tuple[str, ...] = ()) -> None:
        """`unusable` are ways that the agent tells but that cannot be gone from here."""
        self._way = way
        self._unusable = unusable
        self._rpc = Calls()
        self._question: tuple[int | str, str] | None = None

    def open(self) -> Sequence[LoginOutput]:
        """Greet it."""
        return (self._rpc.request("initialize", _LOGIN_GREETING),)

    def feed(self, frame: bytes) -> Sequence[LoginOutput]:
        """Take one message."""
        message = read(frame)
        match message.kind:
            case "response":
                return self._answered(message)
            case "request":
                return self._requested(message)
            case "notification":
                return _words(message)

    def answer(self, code: str) -> Sequence[LoginOutput]:
        """Answer what was asked; agents that ask by printing read a plain line."""
        if self._question is None:
            return (Send(code.encode()),)
        (request, field), self._question = self._question, None
        return (self._rpc.respond(request, {"action": "accept", "content": {field: code}}),)

    def cancel(self) -> Sequence[LoginOutput]:
        """The end of the process says it."""
        return ()

    def _answered(self, message: Incoming) -> Sequence[LoginOutput]:
        method = self._rpc.settle(message)
        if message.error is not None:
            return (Over(described(message.error).message),)
        if method != "initialize":
            return (Over(),)
        if self._way is not None:
            return (self._rpc.request("authenticate", {"methodId": self._way}),)
        return ways_of(message.result, self._unusable), Over()

    def _requested(self, message: Incoming) -> Sequence[LoginOutput]:
        if message.id is None:
            return ()
        if message.method != "elicitation/create":
            return (self._rpc.refuse(message.id, _NOT_OFFERED, "Not while it is logged in."),)
        try:
            wanted = msgspec.json.decode(message.params, type=Elicitation)
        except msgspec.DecodeError:
            wanted = Elicitation()
        if wanted.mode == "url" and wanted.url:
            accepted = self._rpc.respond(message.id, {"action": "accept"})
            return Shown(text=f"{wanted.message}\n{wanted.url}"), accepted
        if (field := _only_field(wanted.requested_schema)) is None:
            return (self._rpc.respond(message.id, {"action": "decline"}),)
        self._question = (message.id, field)
        return (Shown(text=wanted.message or field, asks=True),)


def ways_of(result: bytes | msgspec.Raw, unusable: tuple[str, ...] = ()) -> Ways:
    """The ways in an answer to `initialize`; what makes no sense is left out."""
    try:
        listed = msgspec.json.decode(result, type=Greeted).auth_methods or ()
    except msgspec.DecodeError:
        return Ways()
    methods = [method for each in listed[:_MOST] if (method := _method(each)) is not None and method.id not in unusable]
    variables = [variable.name for method in methods for variable in method.vars if _is_variable(variable.name)]
    return Ways(
        ways=tuple(way for method in methods if (way := _way(method)) is not None),
        variables=tuple(dict.fromkeys(variables)),
    )


def _method(listed: Any) -> Method | None:
    try:
        return msgspec.convert(listed, Method)
    except msgspec.ValidationError:
        return None


def _way(method: Method) -> Way | None:
    """The way of a method; None for one that only wants a key or something that only the agent's own client has."""
    meta = method.meta or {}
    name, about = _short(method.name or method.id), _short(method.description or "")
    terminal = meta.get("terminal-auth")
    if isinstance(terminal, dict) and isinstance(terminal.get("command"), str):
        words = (terminal["command"], *_texts(terminal.get("args")))
        return Way(id=method.id, name=name, about=about, command=words, env=_pairs(terminal.get("env")))
    kind = method.type or meta.get("type") or "agent"
    if kind == "terminal":
        arguments = method.args or _texts(meta.get("args"))
        return Way(id=method.id, name=name, about=about, arguments=arguments, env=method.env or {})
    only_for_others = kind != "agent" or "api-key" in meta or "gateway" in meta
    return None if only_for_others else Way(id=method.id, name=name, about=about)


def _words(message: Incoming) -> Sequence[LoginOutput]:
    """What the agent says meanwhile."""
    try:
        update = msgspec.json.decode(message.params, type=dict[str, Any]).get("update")
    except msgspec.DecodeError:
        return ()
    match update:
        case {"content": {"text": str(text)}}:
            return (Shown(text=text),)
        case _:
            return ()


def _only_field(schema: dict[str, Any] | None) -> str | None:
    """The one text that a form asks for."""
    match (schema or {}).get("properties"):
        case {**fields} if len(fields) == 1:
            name, field = next(iter(fields.items()))
            return str(name) if isinstance(field, dict) and field.get("type") == "string" else None
        case _:
            return None


def _is_variable(name: str) -> bool:
    return name.isascii() and name.isidentifier() and len(name) <= _LONGEST_TEXT


def _short(text: str) -> str:
    return "".join(letter if letter.isprintable() else " " for letter in text)[:_LONGEST_TEXT].strip()


def _texts(values: Any) -> tuple[str, ...]:
    return tuple(map(str, values)) if isinstance(values, list) else ()


def _pairs(values: Any) -> dict[str, str]:
    return {str(name): str(value) for name, value in values.items()} if isinstance(values, dict) else {}
