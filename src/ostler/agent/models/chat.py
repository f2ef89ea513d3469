"""OpenAI Chat Completions, and the many services that speak it."""

from collections.abc import Mapping
from typing import Any

import msgspec

from ostler.agent.entries import Assistant, Block, Call, Exchange, Stop, Text, Thought, Tokens, User
from ostler.agent.models.asking import NO_JSON, Answer, BrokenOff, Delta, Question
from ostler.agent.models.failures import failure_within
from ostler.agent.models.naming import base64_of, native_ids, usable_name
from ostler.base.ids import ulid

_STOPS: dict[str, Stop] = {
    "stop": "end_turn",
    "length": "max_tokens",
    "tool_calls": "tool_use",
    "function_call": "tool_use",
    "content_filter": "refusal",
}


class Chat:
    """What a request looks like; services differ in two names."""

    api = "chat"
    path = "/chat/completions"

    def __init__(self, *, is_openai: bool = False, is_openrouter: bool = False) -> None:
        self._limit = "max_completion_tokens" if is_openai else "max_tokens"
        self._is_openai = is_openai
        self._is_openrouter = is_openrouter

    def headers(self, key: str | None) -> Mapping[str, str]:
        """The key."""
        return {"authorization": f"Bearer {key}"} if key else {}

    def body(self, question: Question) -> dict[str, Any]:
        """The request."""
        messages = _messages(question)
        if self._is_openrouter and question.model.startswith("anthropic/"):
            _mark(messages)
        return {
            "model": question.model,
            "messages": messages,
            **({"prompt_cache_key": question.key} if self._is_openai and question.key else {}),
            "stream": True,
            "stream_options": {"include_usage": True},
            **({"tools": [_tool(tool) for tool in question.tools]} if question.tools else {}),
            **({self._limit: question.max_tokens} if question.max_tokens else {}),
            **({"temperature": question.temperature} if question.temperature is not None else {}),
            **self._thinking(question.effort),
        }

    def _thinking(self, effort: str | None) -> dict[str, Any]:
        if effort is None:
            return {}
        if not self._is_openrouter:
            return {"reasoning_effort": effort}
        return {"reasoning": {"enabled": False} if effort == "none" else {"effort": effort}}

    def reader(self) -> "ChatReader":
        """For the answer."""
        return ChatReader()


def _mark(messages: list[dict[str, Any]]) -> None:
    """Say up to where Anthropic is to keep what it has read: the system, and what was said last."""
    for message in [messages[0], *messages[-2:]]:
        if isinstance(message["content"], str):
            message["content"] = [{"type": "text", "text": message["content"]}]
        if message["content"] and message["content"][-1]["type"] == "text":
            message["content"][-1] |= {"cache_control": {"type": "ephemeral"}}


def _tool(tool: Any) -> dict[str, Any]:
    described = {"name": tool.name, "description": tool.description, "parameters": tool.schema}
    return {"type": "function", "function": described}


def _messages(question: Question) -> list[dict[str, Any]]:
    messages: list[dict[str, Any]] = [{"role": "system", "content": question.system}]
    ids = native_ids(question.steps, question.model, "chat")
    for step in question.steps:
        match step:
            case User():
                images = [_image(picture.mime, question.picture(picture)) for picture in step.pictures]
                text = {"type": "text", "text": step.words}
                messages.append({"role": "user", "content": [text, *images] if images else text["text"]})
            case Exchange(assistant=assistant, results=results):
                messages.append(
                    _assistant(assistant, ids, is_own=assistant.api == "chat" and assistant.model == question.model)
                )
                for result in results:
                    content = result.output or "(no output)"
                    messages.append({"role": "tool", "tool_call_id": ids[result.call], "content": content})
                shown = [picture for result in results for picture in result.pictures]
                if shown:  # a tool's message takes text only
                    images = [_image(picture.mime, question.picture(picture)) for picture in shown]
                    about = {"type": "text", "text": "The images that the tools above have read:"}
                    messages.append({"role": "user", "content": [about, *images]})
    return messages


def _image(mime: str, content: bytes) -> dict[str, Any]:
    return {"type": "image_url", "image_url": {"url": f"data:{mime};base64,{base64_of(content)}"}}


def _assistant(assistant: Assistant, ids: Mapping[str, str], *, is_own: bool) -> dict[str, Any]:
    text = "".join(block.text for block in assistant.blocks if isinstance(block, Text))
    calls = [_call(block, ids) for block in assistant.blocks if isinstance(block, Call)]
    message: dict[str, Any] = {"role": "assistant", "content": text or None}
    if not calls:
        return message
    if is_own:  # models that think between calls want to see what they thought
        for block in assistant.blocks:
            if isinstance(block, Thought) and block.native:
                message |= msgspec.json.decode(block.native)
    return {**message, "tool_calls": calls}


def _call(call: Call, ids: Mapping[str, str]) -> dict[str, Any]:
    return {
        "id": ids[call.id],
        "type": "function",
        "function": {"name": usable_name(call.name), "arguments": call.input or "{}"},
    }


# Answers


class _Function(msgspec.Struct, frozen=True):
    name: str | None = None
    arguments: str | None = None


class _CallPiece(msgspec.Struct, frozen=True):
    index: int = 0
    id: str | None = None
    function: _Function = _Function()


class _Piece(msgspec.Struct, frozen=True):
    content: str | None = None
    refusal: str | None = None
    reasoning_content: str | None = None
    reasoning: str | None = None
    reasoning_details: list[msgspec.Raw] | None = None
    tool_calls: list[_CallPiece] | None = None


class _Choice(msgspec.Struct, frozen=True):
    delta: _Piece | None = None
    finish_reason: str | None = None


class _InputDetails(msgspec.Struct, frozen=True):
    cached_tokens: int | None = None


class _OutputDetails(msgspec.Struct, frozen=True):
    reasoning_tokens: int | None = None


class _Usage(msgspec.Struct, frozen=True):
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    prompt_tokens_details: _InputDetails | None = None
    completion_tokens_details: _OutputDetails | None = None


class _Error(msgspec.Struct, frozen=True):
    message: str = ""
    code: int | str | None = None


class _Chunk(msgspec.Struct, frozen=True):
    choices: list[_Choice] | None = None
    usage: _Usage | None = None
    error: _Error | None = None


class _OpenCall:
    def __init__(self) -> None:
        self.id = ulid()
        self.native_id = ""
        self.name = ""
        self.input: list[str] = []


_chunks = msgspec.json.Decoder(_Chunk)


class ChatReader:
    """One answer."""

    def __init__(self) -> None:
        self._text: list[str] = []
        self._thought: list[str] = []
        self._field = "reasoning_content"
        self._details: list[msgspec.Raw] = []
        self._calls: dict[int, _OpenCall] = {}
        self._finish: str | None = None
        self._refused = False
        self._tokens = Tokens()

    def feed(self, data: bytes) -> Delta | None:
        """The next event."""
        if data == b"[DONE]":
            return None
        try:
            chunk = _chunks.decode(data)
        except NO_JSON as error:
            raise BrokenOff(f"an event makes no sense ({error})") from error
        if chunk.error is not None:
            raise failure_within(chunk.error.code, chunk.error.message, data)
        if chunk.usage is not None:
            self._tokens = _tokens(chunk.usage)
        if not chunk.choices:
            return None
        choice = chunk.choices[0]
        self._finish = choice.finish_reason or self._finish
        return self._grow(choice.delta) if choice.delta is not None else None

    def _grow(self, piece: _Piece) -> Delta | None:
        for call in piece.tool_calls or ():
            self._grow_call(call)
        self._details += piece.reasoning_details or ()
        thought = piece.reasoning_content or piece.reasoning
        if thought:
            self._field = "reasoning_content" if piece.reasoning_content else "reasoning"
            self._thought.append(thought)
            return Delta("thinking", thought)
        self._refused |= bool(piece.refusal)
        text = piece.content or piece.refusal
        if text:
            self._text.append(text)
            return Delta("text", text)
        return None

    def _grow_call(self, piece: _CallPiece) -> None:
        """Id and name come once, again and again, or empty: the index is what counts."""
        call = self._calls.setdefault(piece.index, _OpenCall())
        call.native_id = call.native_id or piece.id or ""
        call.name = call.name or piece.function.name or ""
        call.input.append(piece.function.arguments or "")

    def answer(self) -> Answer | None:
        """The answer once it is complete."""
        if self._finish is None:
            return None
        stop = "refusal" if self._refused else _STOPS.get(self._finish, "end_turn")
        return Answer(blocks=self.partial(), stop=stop, tokens=self._tokens)

    def partial(self) -> tuple[Block, ...]:
        """What has been said so far."""
        blocks: list[Block] = []
        if self._thought or self._details:
            blocks.append(Thought(text="".join(self._thought), native=self._native()))
        if self._text:
            blocks.append(Text(text="".join(self._text)))
        calls = (self._calls[index] for index in sorted(self._calls))
        blocks += [
            Call(id=call.id, name=call.name, input="".join(call.input), native_id=call.native_id) for call in calls
        ]
        return tuple(blocks)

    def _native(self) -> bytes:
        given = {"reasoning_details": self._details} if self._details else {self._field: "".join(self._thought)}
        return msgspec.json.encode(given)


def _tokens(usage: _Usage) -> Tokens:
    cached = usage.prompt_tokens_details.cached_tokens if usage.prompt_tokens_details else None
    thought = usage.completion_tokens_details.reasoning_tokens if usage.completion_tokens_details else None
    return Tokens(
        input=usage.prompt_tokens or 0,
        output=usage.completion_tokens or 0,
        cached=cached or 0,
        reasoning=thought or 0,
    )
