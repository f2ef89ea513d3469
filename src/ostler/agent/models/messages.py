"""Anthropic Messages."""

from collections.abc import Mapping
from typing import Any

import msgspec

from ostler.agent.entries import Block, Call, Exchange, Result, Stop, Text, Thought, Tokens, User
from ostler.agent.models.asking import NO_JSON, Answer, BrokenOff, Delta, Question
from ostler.agent.models.failures import failure_within
from ostler.agent.models.naming import base64_of, native_ids, usable_name
from ostler.base.ids import ulid

_VERSION = "2023-06-01"
_LEAST_BUDGET = 1024
_DEFAULT_OUTPUT = 32_000
_CACHED = {"cache_control": {"type": "ephemeral"}}
_STOPS: dict[str, Stop] = {
    "end_turn": "end_turn",
    "stop_sequence": "end_turn",
    "pause_turn": "end_turn",
    "tool_use": "tool_use",
    "max_tokens": "max_tokens",
    "model_context_window_exceeded": "max_tokens",
    "refusal": "refusal",
}


class Messages:
    """What a request looks like."""

    api = "messages"
    path = "/v1/messages"

    def headers(self, key: str | None) -> Mapping[str, str]:
        """The key, and the version of the protocol."""
        return {"anthropic-version": _VERSION, **({"x-api-key": key} if key else {})}

    def body(self, question: Question) -> dict[str, Any]:
        """The request."""
        messages = _messages(question)
        for message in messages[-2:]:  # the second mark finds the prefix again when many blocks came at once
            message["content"][-1] |= _CACHED
        return {
            "model": question.model,
            "max_tokens": question.max_tokens or _DEFAULT_OUTPUT,
            "system": [{"type": "text", "text": question.system, **_CACHED}],
            "messages": messages,
            "stream": True,
            **({"tools": [_tool(tool) for tool in question.tools]} if question.tools else {}),
            **({"temperature": question.temperature} if question.temperature is not None else {}),
            **_thinking(question),
        }

    def reader(self) -> "MessagesReader":
        """For the answer."""
        return MessagesReader()


def _tool(tool: Any) -> dict[str, Any]:
    return {"name": tool.name, "description": tool.description, "input_schema": tool.schema}


def _thinking(question: Question) -> dict[str, Any]:
    if question.effort is not None:
        return {
            "thinking": {"type": "adaptive", "display": "summarized"},
            "output_config": {"effort": question.effort},
        }
    most = (question.max_tokens or _DEFAULT_OUTPUT) - 1
    if question.budget is None or most < _LEAST_BUDGET:
        return {}
    return {"thinking": {"type": "enabled", "budget_tokens": max(_LEAST_BUDGET, min(question.budget, most))}}


def _messages(question: Question) -> list[dict[str, Any]]:
    messages: list[dict[str, Any]] = []
    ids = native_ids(question.steps, question.model, "messages")

    def say(role: str, blocks: list[dict[str, Any]]) -> None:
        if messages and messages[-1]["role"] == role:
            messages[-1]["content"] += blocks
        elif blocks:
            messages.append({"role": role, "content": blocks})

    for step in question.steps:
        match step:
            case User():
                say("user", _user(step, question))
            case Exchange(assistant=assistant, results=results):
                is_own = assistant.api == "messages" and assistant.model == question.model
                blocks = [sent for block in assistant.blocks if (sent := _block(block, ids, is_own=is_own)) is not None]
                say("assistant", blocks)
                say("user", [_result(result, ids, question) for result in results])
    return messages


def _user(user: User, question: Question) -> list[dict[str, Any]]:
    pictures = [_image(picture.mime, question.picture(picture)) for picture in user.pictures]
    return [*pictures, {"type": "text", "text": user.words}]


def _image(mime: str, content: bytes) -> dict[str, Any]:
    return {"type": "image", "source": {"type": "base64", "media_type": mime, "data": base64_of(content)}}


def _block(block: Block, ids: Mapping[str, str], *, is_own: bool) -> dict[str, Any] | None:
    match block:
        case Text(text=text):
            return {"type": "text", "text": text} if text.strip() else None
        case Thought(native=native):
            return msgspec.json.decode(native) if is_own and native else None
        case Call():
            return {
                "type": "tool_use",
                "id": ids[block.id],
                "name": usable_name(block.name),
                "input": _input(block.input),
            }


def _input(text: str) -> dict[str, Any]:
    """The input of a call; one that was no JSON goes back as text in an object, because it must be one."""
    try:
        found = msgspec.json.decode(text or "{}")
    except NO_JSON:
        found = None
    return found if isinstance(found, dict) else {"malformed": text}


def _result(result: Result, ids: Mapping[str, str], question: Question) -> dict[str, Any]:
    pictures = [_image(picture.mime, question.picture(picture)) for picture in result.pictures]
    content = [{"type": "text", "text": result.output or "(no output)"}, *pictures]
    sent = {"type": "tool_result", "tool_use_id": ids[result.call], "content": content}
    return {**sent, "is_error": True} if result.failed else sent


# Answers


class _Usage(msgspec.Struct, frozen=True):
    input_tokens: int | None = None
    output_tokens: int | None = None
    cache_read_input_tokens: int | None = None
    cache_creation_input_tokens: int | None = None


class _Piece(msgspec.Struct, frozen=True):
    type: str = ""
    text: str = ""
    thinking: str = ""
    signature: str = ""
    data: str = ""
    id: str = ""
    name: str = ""
    partial_json: str = ""
    stop_reason: str | None = None


class _Message(msgspec.Struct, frozen=True):
    usage: _Usage | None = None


class _Error(msgspec.Struct, frozen=True):
    type: str = ""
    message: str = ""


class _Event(msgspec.Struct, frozen=True):
    type: str
    index: int = 0
    message: _Message | None = None
    content_block: _Piece | None = None
    delta: _Piece | None = None
    usage: _Usage | None = None
    error: _Error | None = None


class _Open:
    """A block that grows."""

    def __init__(self, piece: _Piece) -> None:
        self.kind = piece.type
        self.piece = piece
        self.text = [piece.text or piece.thinking]
        self.signature = piece.signature
        self.call_id = ulid()

    def block(self) -> Block | None:
        text = "".join(self.text)
        match self.kind:
            case "text":
                return Text(text=text)
            case "thinking":
                native = {"type": "thinking", "thinking": text, "signature": self.signature}
                return Thought(text=text, native=msgspec.json.encode(native) if self.signature else b"")
            case "redacted_thinking":
                native = {"type": "redacted_thinking", "data": self.piece.data}
                return Thought(text="", native=msgspec.json.encode(native))
            case "tool_use":
                return Call(id=self.call_id, name=self.piece.name, input=text, native_id=self.piece.id)
            case _:
                return None


_events = msgspec.json.Decoder(_Event)


class MessagesReader:
    """One answer."""

    def __init__(self) -> None:
        self._open: dict[int, _Open] = {}
        self._stop: str | None = None
        self._is_over = False
        self._tokens = Tokens()

    def feed(self, data: bytes) -> Delta | None:
        """The next event."""
        try:
            event = _events.decode(data)
        except NO_JSON as error:
            raise BrokenOff(f"an event makes no sense ({error})") from error
        if event.error is not None:
            raise failure_within(event.error.type, event.error.message)
        if event.message is not None and event.message.usage is not None:
            self._count(event.message.usage)
        if event.usage is not None:
            self._count(event.usage)
        match event.type:
            case "content_block_start" if event.content_block is not None:
                self._open[event.index] = _Open(event.content_block)
            case "content_block_delta" if event.delta is not None:
                return self._grow(event.index, event.delta)
            case "message_delta" if event.delta is not None:
                self._stop = event.delta.stop_reason or self._stop
            case "message_stop":
                self._is_over = True
        return None

    def _grow(self, index: int, delta: _Piece) -> Delta | None:
        block = self._open.get(index)
        if block is None:
            return None
        match delta.type:
            case "text_delta":
                block.text.append(delta.text)
                return Delta("text", delta.text)
            case "thinking_delta":
                block.text.append(delta.thinking)
                return Delta("thinking", delta.thinking)
            case "signature_delta":
                block.signature += delta.signature
            case "input_json_delta":
                block.text.append(delta.partial_json)
        return None

    def _count(self, usage: _Usage) -> None:
        cached, written = usage.cache_read_input_tokens or 0, usage.cache_creation_input_tokens or 0
        now = self._tokens
        fresh = usage.input_tokens
        self._tokens = Tokens(
            input=now.input if fresh is None else fresh + cached + written,
            output=usage.output_tokens if usage.output_tokens is not None else now.output,
            cached=cached if fresh is not None else now.cached,
        )

    def answer(self) -> Answer | None:
        """The answer once it is complete."""
        if not self._is_over:
            return None
        return Answer(blocks=self.partial(), stop=_STOPS.get(self._stop or "", "end_turn"), tokens=self._tokens)

    def partial(self) -> tuple[Block, ...]:
        """What has been said so far."""
        found = (self._open[index].block() for index in sorted(self._open))
        return tuple(block for block in found if block is not None)
