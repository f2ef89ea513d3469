"""Gemini's generateContent: signatures of thoughts stand on parts, which go back where they were."""

from collections.abc import Mapping
from typing import Any

import msgspec

from ostler.agent.entries import Assistant, Block, Call, Exchange, Result, Stop, Text, Thought, Tokens, User
from ostler.agent.models.asking import NO_JSON, Answer, BrokenOff, Delta, Question, ToolSpec
from ostler.agent.models.failures import failure_within
from ostler.agent.models.naming import base64_of, usable_name
from ostler.base.ids import ulid

_UNSIGNED = "skip_thought_signature_validator"
"""What Gemini documents for calls that it has not made itself."""
_STOPS: dict[str, Stop] = {"STOP": "end_turn", "MAX_TOKENS": "max_tokens"}
_NO_SENSE = frozenset({"MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL", "TOO_MANY_TOOL_CALLS", "OTHER"})
"""It stumbled; another try may do better."""


class Gemini:
    """What a request looks like; the model is part of the address."""

    def __init__(self, model: str) -> None:
        self.path = f"/v1beta/models/{model}:streamGenerateContent?alt=sse"

    def headers(self, key: str | None) -> Mapping[str, str]:
        """The key."""
        return {"x-goog-api-key": key} if key else {}

    def body(self, question: Question) -> dict[str, Any]:
        """The request."""
        config = {
            **({"maxOutputTokens": question.max_tokens} if question.max_tokens else {}),
            **({"temperature": question.temperature} if question.temperature is not None else {}),
            **_thinking(question),
        }
        return {
            "systemInstruction": {"parts": [{"text": question.system}]},
            "contents": _contents(question),
            **({"tools": [{"functionDeclarations": [_tool(t) for t in question.tools]}]} if question.tools else {}),
            **({"generationConfig": config} if config else {}),
        }

    def reader(self) -> "GeminiReader":
        """For the answer."""
        return GeminiReader()


def _tool(tool: ToolSpec) -> dict[str, Any]:
    return {"name": tool.name, "description": tool.description, "parametersJsonSchema": tool.schema}


def _thinking(question: Question) -> dict[str, Any]:
    if question.effort is not None:
        return {"thinkingConfig": {"includeThoughts": True, "thinkingLevel": question.effort}}
    if question.budget is not None:
        return {"thinkingConfig": {"includeThoughts": question.budget > 0, "thinkingBudget": question.budget}}
    return {"thinkingConfig": {"includeThoughts": True}} if question.thinks else {}


def _contents(question: Question) -> list[dict[str, Any]]:
    contents: list[dict[str, Any]] = []

    def say(role: str, parts: list[dict[str, Any]]) -> None:
        if contents and contents[-1]["role"] == role:
            contents[-1]["parts"] += parts
        elif parts:
            contents.append({"role": role, "parts": parts})

    for step in question.steps:
        match step:
            case User():
                images = [_image(picture.mime, question.picture(picture)) for picture in step.pictures]
                say("user", [{"text": step.words}, *images])
            case Exchange(assistant=assistant, results=results):
                is_own = (assistant.api, assistant.model) == ("gemini", question.model)
                say("model", _written(assistant, is_own=is_own, is_strict="gemini-2" not in question.model))
                names = {block.id: usable_name(block.name) for block in assistant.blocks if isinstance(block, Call)}
                pictures = [picture for result in results for picture in result.pictures]
                answers = [_result(result, names[result.call]) for result in results]
                say("user", [*answers, *(_image(picture.mime, question.picture(picture)) for picture in pictures)])
    return contents


def _image(mime: str, content: bytes) -> dict[str, Any]:
    return {"inlineData": {"mimeType": mime, "data": base64_of(content)}}


def _written(assistant: Assistant, *, is_own: bool, is_strict: bool) -> list[dict[str, Any]]:
    parts = []
    must_sign = is_strict and not is_own  # the first call of a message that another model has written
    for block in assistant.blocks:
        own = msgspec.json.decode(block.native) if is_own and block.native else {}
        match block:
            case Thought():
                if own:
                    parts.append(own)
            case Text(text=text):
                if text.strip() or own:
                    parts.append({"text": text, **own})
            case Call():
                if must_sign:
                    own, must_sign = {"thoughtSignature": _UNSIGNED}, False
                parts.append(
                    {"functionCall": {"name": usable_name(block.name), "args": _arguments(block.input)}, **own}
                )
    return parts


def _arguments(text: str) -> dict[str, Any]:
    try:
        found = msgspec.json.decode(text or "{}")
    except NO_JSON:
        found = None
    return found if isinstance(found, dict) else {"malformed": text}


def _result(result: Result, name: str) -> dict[str, Any]:
    answer = {"error" if result.failed else "output": result.output or "(no output)"}
    return {"functionResponse": {"name": name, "response": answer}}


# Answers


class _Called(msgspec.Struct, frozen=True):
    name: str = ""
    args: msgspec.Raw = msgspec.Raw()
    id: str | None = None


class _Part(msgspec.Struct, frozen=True, rename="camel"):
    text: str | None = None
    thought: bool = False
    thought_signature: str | None = None
    function_call: _Called | None = None


class _Content(msgspec.Struct, frozen=True):
    parts: list[_Part] | None = None


class _Candidate(msgspec.Struct, frozen=True, rename="camel"):
    content: _Content | None = None
    finish_reason: str | None = None


class _Usage(msgspec.Struct, frozen=True, rename="camel"):
    prompt_token_count: int = 0
    candidates_token_count: int = 0
    thoughts_token_count: int = 0
    cached_content_token_count: int = 0


class _Feedback(msgspec.Struct, frozen=True, rename="camel"):
    block_reason: str | None = None


class _Error(msgspec.Struct, frozen=True):
    code: int | str | None = None
    message: str = ""


class _Chunk(msgspec.Struct, frozen=True, rename="camel"):
    candidates: list[_Candidate] | None = None
    usage_metadata: _Usage | None = None
    prompt_feedback: _Feedback | None = None
    error: _Error | None = None


_chunks = msgspec.json.Decoder(_Chunk)


class _Open:
    """A text that grows, spoken or thought, until its signature or another part comes."""

    def __init__(self, *, is_thought: bool) -> None:
        self.is_thought = is_thought
        self.pieces: list[str] = []
        self.signature: str | None = None

    def block(self) -> Block:
        text = "".join(self.pieces)
        signed = {"thoughtSignature": self.signature} if self.signature else {}
        if not self.is_thought:
            return Text(text=text, native=msgspec.json.encode(signed) if signed else b"")
        native = {"text": text, "thought": True, **signed}
        return Thought(text=text, native=msgspec.json.encode(native) if signed else b"")


class GeminiReader:
    """One answer."""

    def __init__(self) -> None:
        self._blocks: list[Block | _Open] = []
        self._stop: Stop | None = None
        self._tokens = Tokens()

    def feed(self, data: bytes) -> Delta | None:
        """The next event."""
        try:
            chunk = _chunks.decode(data)
        except NO_JSON as error:
            raise BrokenOff(f"an event makes no sense ({error})") from error
        if chunk.error is not None:
            raise failure_within(chunk.error.code, chunk.error.message, data)
        if chunk.usage_metadata is not None:
            self._tokens = _tokens(chunk.usage_metadata)
        if chunk.prompt_feedback is not None and chunk.prompt_feedback.block_reason:
            self._stop = "refusal"
        candidate = chunk.candidates[0] if chunk.candidates else _Candidate()
        deltas = [self._take(part) for part in (candidate.content and candidate.content.parts) or ()]
        if candidate.finish_reason:
            self._finish(candidate.finish_reason)
        return _joined([delta for delta in deltas if delta is not None])

    def _take(self, part: _Part) -> Delta | None:
        if part.function_call is not None:
            signed = {"thoughtSignature": part.thought_signature} if part.thought_signature else {}
            called = part.function_call
            text = bytes(called.args).decode() or "{}"
            native = msgspec.json.encode(signed) if signed else b""
            self._blocks.append(Call(id=ulid(), name=called.name, input=text, native_id="", native=native))
            return None
        if part.text is None and part.thought_signature is None:
            return None
        last = self._blocks[-1] if self._blocks else None
        if not isinstance(last, _Open) or last.signature is not None or last.is_thought != part.thought:
            last = _Open(is_thought=part.thought)
            self._blocks.append(last)
        last.pieces.append(part.text or "")
        last.signature = part.thought_signature
        return Delta("thinking" if part.thought else "text", part.text or "")

    def _finish(self, reason: str) -> None:
        if reason in _NO_SENSE:
            raise BrokenOff(f"the model stopped with {reason}")
        stop = _STOPS.get(reason, "refusal")
        wants = any(isinstance(block, Call) for block in self._blocks)
        self._stop = "tool_use" if wants and stop == "end_turn" else stop

    def answer(self) -> Answer | None:
        """The answer once it is complete."""
        if self._stop is None:
            return None
        return Answer(blocks=self.partial(), stop=self._stop, tokens=self._tokens)

    def partial(self) -> tuple[Block, ...]:
        """What has been said so far."""
        found = (block.block() if isinstance(block, _Open) else block for block in self._blocks)
        return tuple(block for block in found if not isinstance(block, Text) or block.text or block.native)


def _joined(deltas: list[Delta]) -> Delta | None:
    """Parts of one event are of one kind nearly always; if not, people see them as text."""
    if not deltas:
        return None
    kinds = {delta.kind for delta in deltas if delta.text}
    kind = kinds.pop() if len(kinds) == 1 else "text"
    return Delta(kind, "".join(delta.text for delta in deltas))


def _tokens(usage: _Usage) -> Tokens:
    return Tokens(
        input=usage.prompt_token_count,
        output=usage.candidates_token_count + usage.thoughts_token_count,
        cached=usage.cached_content_token_count,
        reasoning=usage.thoughts_token_count,
    )
