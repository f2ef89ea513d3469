"""Anthropic Messages."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ostler.conformance.model.actions import Call, Reply, Say, Think
from ostler.conformance.model.conversation import Conversation, Json, Tool, TurnList
from ostler.conformance.model.dialect import (
    Dialect,
    Frame,
    _cached,
    _chunks,
    _halves,
    _new_id,
    _paced,
    _signature,
    _usage,
)

_STOPS = {"refusal": "refusal", "length": "max_tokens"}


class Anthropic(Dialect):
    """Anthropic Messages."""

    def parse(self, body: Json, path: str) -> Conversation:
        turns = TurnList()
        for message in body.get("messages", ()):
            side = "model" if message["role"] == "assistant" else "user"
            content = message["content"]
            if isinstance(content, str):
                content = [{"type": "text", "text": content}]
            for part in content:
                self._add(turns, side, part)
        system = body.get("system") or ""
        if isinstance(system, list):
            system = "\n".join(part.get("text", "") for part in system)
        tools = [Tool(t["name"], t.get("input_schema", {})) for t in body.get("tools", ())]
        return Conversation(body.get("model", ""), bool(body.get("stream")), system, turns.turns, tools)

    @staticmethod
    def _add(turns: TurnList, side: str, part: Json) -> None:
        match part.get("type"):
            case "text":
                turns.say(side, part["text"])
            case "tool_use":
                turns.at(side).calls += 1
            case "image":
                turns.at(side).images += 1
            case "tool_result":
                content = part.get("content") or ""
                if isinstance(content, list):
                    turns.at(side).images += sum(c.get("type") == "image" for c in content)
                    content = "\n".join(c.get("text", "") for c in content)
                turns.at(side).results.append(content)
            case _:
                turns.at(side)

    def stream(self, reply: Reply, conv: Conversation) -> Iterator[Frame]:
        spent, made = _usage(reply, conv)
        message = self._envelope(conv, spent) | {"content": [], "stop_reason": None}

        def frame(kind: str, pause: float = 0.0, **rest: Any) -> Frame:
            return Frame({"type": kind, **rest}, event=kind, pause=pause)

        yield frame("message_start", message=message)
        for index, (block, pause) in enumerate(_paced(reply)):
            yield frame("content_block_start", pause, index=index, content_block=self._opening(block))
            for delta, wait in self._deltas(block, conv):
                yield frame("content_block_delta", wait, index=index, delta=delta)
            yield frame("content_block_stop", index=index)
        stop = _STOPS.get(reply.stop or "", "tool_use" if reply.has_call else "end_turn")
        yield frame(
            "message_delta",
            delta={"stop_reason": stop, "stop_sequence": None},
            usage={"output_tokens": made},
        )
        yield frame("message_stop")

    def whole(self, reply: Reply, conv: Conversation) -> Json:
        spent, made = _usage(reply, conv)
        message = self._envelope(conv, spent)
        content = []
        for block, _ in _paced(reply):
            part = self._opening(block)
            if isinstance(block, Think):
                part |= {"thinking": block.text, "signature": _signature(conv, block.text)}
            elif isinstance(block, Say):
                part["text"] = block.text
            else:
                part["input"] = block.arguments
            content.append(part)
        message["usage"]["output_tokens"] = made
        stop = "tool_use" if reply.has_call else "end_turn"
        return message | {"content": content, "stop_reason": stop}

    @staticmethod
    def _envelope(conv: Conversation, spent: int) -> Json:
        return {
            "id": _new_id("msg"),
            "type": "message",
            "role": "assistant",
            "model": conv.model,
            "stop_sequence": None,
            "usage": {
                "input_tokens": spent - _cached(conv),
                "cache_creation_input_tokens": 0,
                "cache_read_input_tokens": _cached(conv),
                "output_tokens": 1,
            },
        }

    @staticmethod
    def _opening(block: Say | Think | Call) -> Json:
        if isinstance(block, Think):
            return {"type": "thinking", "thinking": "", "signature": ""}
        if isinstance(block, Say):
            return {"type": "text", "text": ""}
        return {"type": "tool_use", "id": _new_id("toolu"), "name": block.tool.name, "input": {}}

    @staticmethod
    def _deltas(block: Say | Think | Call, conv: Conversation) -> Iterator[tuple[Json, float]]:
        if isinstance(block, Call):
            for half in _halves(block.written):
                yield {"type": "input_json_delta", "partial_json": half}, 0.0
            return
        for text, wait in _chunks(block):
            if isinstance(block, Think):
                yield {"type": "thinking_delta", "thinking": text}, wait
            else:
                yield {"type": "text_delta", "text": text}, wait
        if isinstance(block, Think):
            yield {"type": "signature_delta", "signature": _signature(conv, block.text)}, 0.0

    def broken_off(self, words: str) -> Frame:
        error = {"type": "overloaded_error", "message": words}
        return Frame({"type": "error", "error": error}, event="error")

    def error(self, status: int) -> Json:
        kinds = {
            400: "invalid_request_error",
            401: "authentication_error",
            403: "permission_error",
            404: "not_found_error",
            429: "rate_limit_error",
            529: "overloaded_error",
        }
        return {
            "type": "error",
            "error": {
                "type": kinds.get(status, "api_error"),
                "message": f"Scripted error {status}",
            },
            "request_id": _new_id("req"),
        }
