"""OpenAI Responses, without anything kept there: what was thought goes back encrypted."""

from collections.abc import Mapping
from typing import Any

import msgspec

from ostler.agent.entries import Assistant, Block, Call, Exchange, Result, Stop, Text, Thought, Tokens, User
from ostler.agent.models.asking import NO_JSON, Answer, BrokenOff, Delta, Question, ToolSpec
from ostler.agent.models.failures import failure_within
from ostler.agent.models.naming import base64_of, native_ids, usable_name
from ostler.base.ids import ulid

_INCOMPLETE: dict[str, Stop] = {"max_output_tokens": "max_tokens", "content_filter": "refusal"}


class Responses:
    """What a request looks like."""

    path = "/responses"

    def headers(self, key: str | None) -> Mapping[str, str]:
        """The key."""
        return {"authorization": f"Bearer {key}"} if key else {}

    def body(self, question: Question) -> dict[str, Any]:
        """The request."""
        return {
            "model": question.model,
            "instructions": question.system,
            "input": _input(question),
            "stream": True,
            "store": False,
            "prompt_cache_key": question.key,
            **({"include": ["reasoning.encrypted_content"]} if question.thinks else {}),
            **({"tools": [_tool(tool) for tool in question.tools]} if question.tools else {}),
            **({"max_output_tokens": question.max_tokens} if question.max_tokens else {}),
            **({"temperature": question.temperature} if question.temperature is not None else {}),
            **({"reasoning": {"effort": question.effort, "summary": "auto"}} if question.effort else {}),
        }

    def reader(self) -> "ResponsesReader":
        """For the answer."""
        return ResponsesReader()


def _tool(tool: ToolSpec) -> dict[str, Any]:
    described = {"name": tool.name, "description": tool.description, "parameters": tool.schema}
    return {"type": "function", "strict": False, **described}


def _input(question: Question) -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = []
    ids = native_ids(question.steps, question.model, "responses")
    for step in question.steps:
        match step:
            case User():
                images = [_image(picture.mime, question.picture(picture)) for picture in step.pictures]
                content = [{"type": "input_text", "text": step.words}, *images]
                items.append({"type": "message", "role": "user", "content": content})
            case Exchange(assistant=assistant, results=results):
                is_own = (assistant.api, assistant.model) == ("responses", question.model)
                items += _written(assistant, ids, is_own=is_own)
                items += [_result(result, ids, question) for result in results]
    return items


def _image(mime: str, content: bytes) -> dict[str, Any]:
    return {"type": "input_image", "image_url": f"data:{mime};base64,{base64_of(content)}"}


def _written(assistant: Assistant, ids: Mapping[str, str], *, is_own: bool) -> list[dict[str, Any]]:
    """What the model said, in its order: a thought must be followed by what it led to."""
    sent = (_item(block, ids, is_own=is_own) for block in assistant.blocks)
    return [item for item in sent if item is not None]


def _item(block: Block, ids: Mapping[str, str], *, is_own: bool) -> dict[str, Any] | None:
    own = msgspec.json.decode(block.native) if is_own and block.native else {}
    match block:
        case Thought():
            return own or None
        case Text(text=text) if not text.strip():
            return None
        case Text(text=text) if own:
            content = [{"type": "output_text", "text": text, "annotations": []}]
            return {"type": "message", "role": "assistant", "status": "completed", "content": content, **own}
        case Text(text=text):
            return {"type": "message", "role": "assistant", "content": text}
        case Call():
            named = {"call_id": ids[block.id], "name": usable_name(block.name), "arguments": block.input or "{}"}
            return {"type": "function_call", **named, **own}


def _result(result: Result, ids: Mapping[str, str], question: Question) -> dict[str, Any]:
    words = result.output or "(no output)"
    output: Any = words
    if result.pictures:
        images = [_image(picture.mime, question.picture(picture)) for picture in result.pictures]
        output = [{"type": "input_text", "text": words}, *images]
    return {"type": "function_call_output", "call_id": ids[result.call], "output": output}


# Answers


class _Summary(msgspec.Struct, frozen=True):
    text: str = ""


class _Content(msgspec.Struct, frozen=True):
    type: str = ""
    text: str = ""
    refusal: str = ""


class _Item(msgspec.Struct, frozen=True, omit_defaults=True):
    type: str = ""
    id: str = ""
    summary: list[_Summary] | None = None
    encrypted_content: str | None = None
    content: list[_Content] | None = None
    call_id: str = ""
    name: str = ""
    arguments: str = ""


class _InputDetails(msgspec.Struct, frozen=True):
    cached_tokens: int | None = None


class _OutputDetails(msgspec.Struct, frozen=True):
    reasoning_tokens: int | None = None


class _Usage(msgspec.Struct, frozen=True):
    input_tokens: int = 0
    output_tokens: int = 0
    input_tokens_details: _InputDetails | None = None
    output_tokens_details: _OutputDetails | None = None


class _Reason(msgspec.Struct, frozen=True):
    reason: str = ""


class _Error(msgspec.Struct, frozen=True):
    code: str | None = None
    type: str | None = None
    message: str = ""


class _Response(msgspec.Struct, frozen=True):
    usage: _Usage | None = None
    incomplete_details: _Reason | None = None
    error: _Error | None = None


class _Event(msgspec.Struct, frozen=True):
    type: str = ""
    output_index: int = 0
    summary_index: int = 0
    delta: str = ""
    item: msgspec.Raw = msgspec.Raw()
    response: _Response | None = None
    error: _Error | None = None
    code: str | None = None
    message: str | None = None


_events = msgspec.json.Decoder(_Event)
_items = msgspec.json.Decoder(_Item)
_SPOKEN = frozenset({"response.output_text.delta", "response.refusal.delta"})
_THOUGHT = frozenset({"response.reasoning_summary_text.delta", "response.reasoning_text.delta"})


class ResponsesReader:
    """One answer."""

    def __init__(self) -> None:
        self._open: dict[int, tuple[str, list[str]]] = {}
        """What an item that is not whole yet has said: `text` or `thinking`."""
        self._whole: dict[int, Block | None] = {}
        self._refused = False
        self._stop: Stop | None = None
        self._tokens = Tokens()

    def feed(self, data: bytes) -> Delta | None:
        """The next event."""
        if data == b"[DONE]":
            return None
        try:
            event = _events.decode(data)
        except NO_JSON as error:
            raise BrokenOff(f"an event makes no sense ({error})") from error
        if event.type in _SPOKEN:
            self._refused |= event.type == "response.refusal.delta"
            return self._grow(event.output_index, Delta("text", event.delta))
        if event.type in _THOUGHT:
            return self._grow(event.output_index, Delta("thinking", event.delta))
        if event.type == "response.reasoning_summary_part.added" and event.summary_index > 0:
            return self._grow(event.output_index, Delta("thinking", "\n\n"))
        if event.type == "response.output_item.done" and bytes(event.item):
            self._take(event.output_index, event.item)
        else:
            self._conclude(event)
        return None

    def _grow(self, index: int, delta: Delta) -> Delta:
        self._open.setdefault(index, (delta.kind, []))[1].append(delta.text)
        return delta

    def _take(self, index: int, raw: msgspec.Raw) -> None:
        try:
            item = _items.decode(raw)
        except NO_JSON as error:
            raise BrokenOff(f"an item makes no sense ({error})") from error
        self._open.pop(index, None)
        self._whole[index] = self._block(item)

    def _block(self, item: _Item) -> Block | None:
        match item.type:
            case "reasoning":
                text = "\n\n".join(part.text for part in item.summary or ())
                fields = {"type": "reasoning", "id": item.id, "summary": _summaries(item)}
                whole = {**fields, "encrypted_content": item.encrypted_content}
                return Thought(text=text, native=msgspec.json.encode(whole) if item.encrypted_content else b"")
            case "message":
                text = "".join(part.text or part.refusal for part in item.content or ())
                self._refused |= any(part.type == "refusal" for part in item.content or ())
                return Text(text=text, native=msgspec.json.encode({"id": item.id}) if item.id else b"")
            case "function_call":
                native = msgspec.json.encode({"id": item.id}) if item.id else b""
                return Call(id=ulid(), name=item.name, input=item.arguments, native_id=item.call_id, native=native)
            case _:
                return None

    def _conclude(self, event: _Event) -> None:
        if event.type in {"error", "response.failed"}:
            error = event.error or (event.response.error if event.response else None) or _Error()
            words = error.message or event.message or ""
            raise failure_within(error.code or error.type or event.code, words)
        if event.response is None or event.type not in {"response.completed", "response.incomplete"}:
            return
        if event.response.usage is not None:
            self._tokens = _tokens(event.response.usage)
        why = event.response.incomplete_details
        if event.type == "response.incomplete":
            self._stop = _INCOMPLETE.get(why.reason if why else "", "max_tokens")
        else:
            wants = any(isinstance(block, Call) for block in self._whole.values())
            self._stop = "refusal" if self._refused else "tool_use" if wants else "end_turn"

    def answer(self) -> Answer | None:
        """The answer once it is complete."""
        if self._stop is None:
            return None
        return Answer(blocks=self.partial(), stop=self._stop, tokens=self._tokens)

    def partial(self) -> tuple[Block, ...]:
        """What has been said so far."""
        blocks: dict[int, Block | None] = dict(self._whole)
        for index, (kind, pieces) in self._open.items():
            text = "".join(pieces)
            blocks[index] = Text(text=text) if kind == "text" else Thought(text=text)
        return tuple(block for _, block in sorted(blocks.items()) if block is not None)


def _summaries(item: _Item) -> list[dict[str, str]]:
    return [{"type": "summary_text", "text": part.text} for part in item.summary or ()]


def _tokens(usage: _Usage) -> Tokens:
    return Tokens(
        input=usage.input_tokens,
        output=usage.output_tokens,
        cached=(usage.input_tokens_details.cached_tokens or 0) if usage.input_tokens_details else 0,
        reasoning=(usage.output_tokens_details.reasoning_tokens or 0) if usage.output_tokens_details else 0,
    )
