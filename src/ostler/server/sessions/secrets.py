"""Which values of a session are nobody's business, and how they are kept out of the log and of what is stored."""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import msgspec

from ostler.base.logs import never_log
from ostler.base.redaction import HIDDEN
from ostler.server.runners.steps import SecretUse
from ostler.server.store.records import SessionRecord, SessionSpec
from ostler.wire.events import ItemCompletedData, ItemDeltaData, TerminalOutputData, TurnEndedData
from ostler.wire.parts import ContentPart, ReasoningPart, TextPart, ToolCallPart, ToolResultPart
from ostler.wire.providers import HttpMcpServer, StdioMcpServer
from ostler.wire.running import Draft

_SECRET_NAME = re.compile(
    r"TOKEN|SECRET|PASSWORD|PASSWD|PASSPHRASE|KEY|CREDENTIAL|COOKIE|AUTHORIZATION|(?<![A-Z])AUTH(?![A-Z])"
)
_PLACE_NAME = re.compile(r"(?:FILE|PATH|DIR)\Z")
_WORD = re.compile(r"[a-z]+|[A-Z]+|[0-9]+")
_PASSWORD = re.compile(r"[a-z][a-z0-9+.-]*://[^/?#\s:@]*:([^/?#\s@]+)@", re.IGNORECASE)
_SCHEME = re.compile(r"(?:bearer|basic|token)\s+", re.IGNORECASE)
_SHORTEST = 8
_MOST_SHOWN = 4
"""So many characters of what may become a secret take the native frame of an event away too."""
_LOOKED_UP = 64
"""Beginnings of secrets up to this length are kept to be looked up; longer ones are compared."""
_GROWING: dict[type, str] = {
    TextPart: "text",
    ReasoningPart: "text",
    ToolCallPart: "arguments",
    ToolResultPart: "output",
}
"""Where the text of a part is that grows."""
_Stream = tuple[str | None, str]
"""What grows: an item, and which text of it."""


def keep_secret(spec: SessionSpec) -> None:
    """Keep what a session was entrusted with out of the server's log."""
    never_log(*_entrusted(spec))


def _entrusted(spec: SessionSpec) -> Iterator[str | None]:
    yield from spec.env.values()
    yield from _credentials(spec)
    for named in _variables(spec):
        yield from named.values()
    if spec.task is not None:
        yield from (webhook.url for webhook in spec.task.webhooks)


def _variables(spec: SessionSpec) -> Iterator[Mapping[str, str]]:
    yield spec.env
    for server in spec.mcp_servers.values():
        match server:
            case StdioMcpServer():
                yield server.env
            case HttpMcpServer():
                yield server.headers


def _credentials(spec: SessionSpec) -> Iterator[str | None]:
    for provider in (spec.provider, spec.next_provider):
        yield provider.api_key if provider is not None else None
    if spec.workspace is not None and spec.workspace.repo.credential is not None:
        yield spec.workspace.repo.credential.token
    if spec.delivery is not None and spec.delivery.credential is not None:
        yield spec.delivery.credential.token
    if spec.task is not None:
        yield from (webhook.secret for webhook in spec.task.webhooks)
        delivery = spec.task.delivery
        yield delivery.credential.token if delivery is not None and delivery.credential is not None else None


def _hidden_values(spec: SessionSpec) -> Iterator[str]:
    """What no event may tell: credentials, what has the name of a secret, and passwords in addresses."""
    yield from (value for value in _credentials(spec) if value)
    for variables in _variables(spec):
        for name, value in variables.items():
            yield from _PASSWORD.findall(value)
            if is_secret_name(name):
                yield from (value, _SCHEME.sub("", value, count=1))


def used_by(session: SessionRecord, names: Iterable[str]) -> SecretUse:
    """What is told of the secrets that are used for a session."""
    return SecretUse(session.project, session.spec.grant.actor or "unknown", session.id, tuple(names))


def names_for_agent(spec: SessionSpec) -> list[str]:
    """The secrets that an agent is started with, by the names that clients gave them."""
    found = ["provider.apiKey"] if spec.provider is not None and spec.provider.api_key else []
    found += [f"env.{name}" for name in spec.env if is_secret_name(name)]
    for server, named in spec.mcp_servers.items():
        values = named.env if isinstance(named, StdioMcpServer) else named.headers
        found += [f"mcpServers.{server}.{name}" for name in values if is_secret_name(name)]
    return found


def is_secret_name(name: str) -> bool:
    """Whether a variable or a header of this name has a secret."""
    upper = name.upper()
    return bool(_SECRET_NAME.search(upper)) and not _PLACE_NAME.search(upper)


def redaction_of(spec: SessionSpec) -> "Redaction | None":
    """What takes the secrets of a session out of its events; None if it has none."""
    values = {value.strip() for value in _hidden_values(spec)}
    secrets = [value for value in values if len(value) >= _SHORTEST and not _WORD.fullmatch(value)]
    return Redaction(secrets) if secrets else None


class Redaction:
    """Takes the secrets of one session out of its events before they are stored."""

    def __init__(self, secrets: Iterable[str]) -> None:
        secrets = tuple(secrets)
        texts = {*secrets, *map(_quoted, secrets)}
        forms = {*texts, *map(_quoted, texts), *(json.dumps(text)[1:-1] for text in texts)}
        longest_first = sorted(map(re.escape, forms), key=len, reverse=True)
        self._texts = re.compile("|".join(longest_first))
        self._bytes = re.compile("|".join(longest_first).encode())
        self._needles = tuple(texts)
        self._firsts = re.compile("|".join({re.escape(text[0]) for text in texts}))
        self._beginnings = frozenset(
            text[:length] for text in texts for length in range(1, min(len(text), _LOOKED_UP + 1))
        )
        self._longest = max(map(len, texts))
        self._held: dict[_Stream, Draft] = {}

    def hidden(self, draft: Draft) -> Draft:
        """An event without them."""
        data: Any = draft.data
        if draft.raw is not None and self._bytes.search(draft.raw):
            draft = msgspec.structs.replace(draft, raw=self._hidden_frame(draft.raw))
        if self._bytes.search(msgspec.json.encode(data)):
            data = msgspec.convert(self._walked(msgspec.to_builtins(data)), type(data))
            draft = msgspec.structs.replace(draft, data=data)
        return draft

    def _hidden_frame(self, raw: bytes) -> bytes | None:
        try:
            return msgspec.json.encode(self._walked(msgspec.json.decode(raw)))
        except ValueError:  # no JSON that we can read
            return None

    def _walked(self, value: Any) -> Any:
        match value:
            case str():
                return self._texts.sub(HIDDEN, value)
            case dict():
                return {key: self._walked(each) for key, each in value.items()}
            case list() | tuple():
                return [self._walked(each) for each in value]
            case _:
                return value

    def grown(self, drafts: Sequence[Draft]) -> list[Draft]:
        """The same events without secrets that are cut in two by them.

        What may be the beginning of one waits for what follows it, at most until its item or its turn is complete.
        """
        found: list[Draft] = []
        for draft in drafts:
            match draft.data:
                case ItemDeltaData(item_id=item, delta=part) if type(part) in _GROWING:
                    found += self._grow((item, type(part).__name__), draft)
                    continue
                case TerminalOutputData(item_id=item, stream=stream):
                    found += self._grow((item, stream), draft)
                    continue
                case ItemCompletedData(item=complete):
                    found += self._let_go(complete.item_id)
                case TurnEndedData():
                    found += self._held.values()
                    self._held.clear()
            found.append(draft)
        return found

    def _let_go(self, item: str) -> list[Draft]:
        """What was held of an item, or of what it tells of; nothing follows it any more."""
        return [self._held.pop(stream) for stream in tuple(self._held) if stream[0] == item]

    def _grow(self, stream: _Stream, draft: Draft) -> list[Draft]:
        before = self._held.pop(stream, None)
        waited = _text_of(before.data) if before is not None else ""
        given = waited + _text_of(draft.data)
        cut = self._cut(given)
        text = self._texts.sub(HIDDEN, given[:cut])
        if before is None and text == given:  # nearly all
            return [draft]
        if cut < len(given):
            self._held[stream] = msgspec.structs.replace(draft, data=_with_text(draft.data, given[cut:]), raw=None)
        if not text:
            return []
        is_near = max(len(waited), len(given) - cut) >= _MOST_SHOWN or text != given[:cut]
        raw = None if is_near else draft.raw
        return [msgspec.structs.replace(draft, data=_with_text(draft.data, text), raw=raw)]

    def _cut(self, text: str) -> int:
        """Where something begins that goes to the end of the text, and may go on to be a secret."""
        firsts = self._firsts.finditer(text, max(0, len(text) - self._longest + 1))
        at = next((found.start() for found in firsts if self._may_begin(text, found.start())), None)
        if at is None:
            return len(text)
        ends = (found.end() for found in self._texts.finditer(text) if found.start() < at < found.end())
        after = next(ends, None)  # what begins inside of a secret is hidden with it
        return at if after is None else after + self._cut(text[after:])

    def _may_begin(self, text: str, at: int) -> bool:
        """Whether all from here on is the beginning of a secret."""
        if text[at : at + _LOOKED_UP] not in self._beginnings:
            return False
        return len(text) - at <= _LOOKED_UP or any(needle.startswith(text[at:]) for needle in self._needles)


def _quoted(text: str) -> str:
    """As it stands in JSON."""
    return msgspec.json.encode(text).decode()[1:-1]


def _text_of(data: object) -> str:
    match data:
        case TerminalOutputData():
            return data.data
        case ItemDeltaData(delta=part):
            return str(getattr(part, _GROWING[type(part)]))
        case _:
            raise TypeError(f"{type(data).__name__} does not grow")


def _with_text(data: object, text: str) -> ItemDeltaData | TerminalOutputData:
    match data:
        case TerminalOutputData():
            return msgspec.structs.replace(data, data=text)
        case ItemDeltaData(delta=part):
            grown: ContentPart = msgspec.structs.replace(part, **{_GROWING[type(part)]: text})
            return msgspec.structs.replace(data, delta=grown)
        case _:
            raise TypeError(f"{type(data).__name__} does not grow")
