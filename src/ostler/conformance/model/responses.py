"""OpenAI Responses."""

from __future__ import annotations

import json
import time
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
    _tokens,
    _usage,
)

_STOPS = {"refusal": "content_filter", "length": "max_output_tokens"}


class OpenAIErrors(Dialect):
    """How OpenAI tells that something went wrong."""

    def error(self, status: int) -> Json:
        code = {401: "invalid_api_key", 429: "rate_limit_exceeded"}.get(status, "server_error")
        return {
            "error": {
                "message": f"Scripted error {status}",
                "type": "invalid_request_error" if 400 <= status < 500 else "server_error",
                "param": None,
                "code": code,
            }
        }


class Responses(OpenAIErrors):
    """OpenAI Responses."""

    def parse(self, body: Json, path: str) -> Conversation:
        turns = TurnList()
        system = body.get("instructions") or ""
        items = body.get("input") or []
        if isinstance(items, str):
            items = [{"type": "message", "role": "user", "content": items}]
        specs = list(body.get("tools") or ())
        for item in items:
            if item.get("type") == "additional_tools":  # newer Codex models list tools here
                specs += item.get("tools", ())
            else:
                system += self._add(turns, item)
            if item.get("type") == "tool_search_output":  # one search is enough
                specs = [spec for spec in specs if spec.get("type") != "tool_search"] + item.get("tools", [])
        tools = list(self._tools(specs))
        return Conversation(body.get("model", ""), bool(body.get("stream")), system, turns.turns, tools)

    @staticmethod
    def _tools(specs: Any, namespace: str | None = None) -> Iterator[Tool]:
        for spec in specs:
            if spec.get("type") == "namespace":
                yield from Responses._tools(spec.get("tools", ()), spec.get("name"))
            elif spec.get("type") == "custom":
                yield Tool(spec["name"], freeform=True, namespace=namespace)
            elif spec.get("type") == "tool_search":
                yield Tool("tool_search", finds_tools=True)
            elif "name" in spec:
                yield Tool(spec["name"], spec.get("parameters") or {}, namespace=namespace)

    @staticmethod
    def _add(turns: TurnList, item: Json) -> str:
        """Adds an input item; returns text that belongs to the system prompt."""
        kind = item.get("type", "message")
        if kind == "message":
            content = item.get("content") or ""
            if isinstance(content, str):
                content = [{"type": "input_text", "text": content}]
            text = "\n".join(c.get("text", "") for c in content if "text" in c)
            if item.get("role") in ("system", "developer"):
                return "\n" + text
            side = "model" if item.get("role") == "assistant" else "user"
            turns.say(side, text)
            turns.at(side).images += sum(c.get("type") == "input_image" for c in content)
        elif kind.endswith("_call_output") or kind == "tool_search_output":
            output = item.get("output")
            if isinstance(output, list):
                turns.at("user").images += sum(o.get("type") == "input_image" for o in output)
                output = "\n".join(o.get("text", "") for o in output)
            turns.at("user").results.append(output if isinstance(output, str) else json.dumps(output))
        elif kind == "tool_search_call":
            turns.at("model").searches += 1
        elif kind.endswith("_call"):
            turns.at("model").calls += 1
        elif kind == "reasoning":
            turns.at("model")
        return ""

    def stream(self, reply: Reply, conv: Conversation) -> Iterator[Frame]:
        sequence = 0

        def frame(kind: str, pause: float = 0.0, **rest: Any) -> Frame:
            nonlocal sequence
            sequence += 1
            return Frame({"type": kind, "sequence_number": sequence - 1, **rest}, event=kind, pause=pause)

        response = self._envelope(conv)
        yield frame("response.created", response=response)
        yield frame("response.in_progress", response=response)
        output = []
        for index, (block, pause) in enumerate(_paced(reply)):
            item = self._item(block, conv)
            yield frame("response.output_item.added", pause, output_index=index, item=self._blank(item))
            at = {"item_id": item["id"], "output_index": index}
            if isinstance(block, Call) and not block.tool.finds_tools:
                field_name, kind = (
                    ("input", "response.custom_tool_call_input")
                    if block.tool.freeform
                    else ("arguments", "response.function_call_arguments")
                )
                for half in _halves(item[field_name]):
                    yield frame(f"{kind}.delta", **at, delta=half)
                yield frame(f"{kind}.done", **at, **{field_name: item[field_name]})
            elif isinstance(block, Think):
                at |= {"summary_index": 0}
                part = {"type": "summary_text", "text": ""}
                yield frame("response.reasoning_summary_part.added", **at, part=part)
                for text, wait in _chunks(block):
                    yield frame("response.reasoning_summary_text.delta", wait, **at, delta=text)
                yield frame("response.reasoning_summary_text.done", **at, text=block.text)
                yield frame("response.reasoning_summary_part.done", **at, part=item["summary"][0])
            elif isinstance(block, Say):
                at |= {"content_index": 0}
                opening = {"type": "output_text", "text": "", "annotations": []}
                yield frame("response.content_part.added", **at, part=opening)
                for text, wait in _chunks(block):
                    yield frame("response.output_text.delta", wait, **at, delta=text, logprobs=[])
                yield frame("response.output_text.done", **at, text=block.text, logprobs=[])
                yield frame("response.content_part.done", **at, part=item["content"][0])
            yield frame("response.output_item.done", output_index=index, item=item)
            output.append(item)
        finished = self._finished(response, output, reply, conv)
        yield frame(f"response.{finished['status']}", response=finished)

    def whole(self, reply: Reply, conv: Conversation) -> Json:
        output = [self._item(block, conv) for block, _ in _paced(reply)]
        return self._finished(self._envelope(conv), output, reply, conv)

    @staticmethod
    def _envelope(conv: Conversation) -> Json:
        return {
            "id": _new_id("resp"),
            "object": "response",
            "created_at": int(time.time()),
            "status": "in_progress",
            "error": None,
            "incomplete_details": None,
            "model": conv.model,
            "output": [],
            "parallel_tool_calls": False,
            "tool_choice": "auto",
            "tools": [],
            "usage": None,
        }

    @staticmethod
    def _finished(response: Json, output: list[Json], reply: Reply, conv: Conversation) -> Json:
        spent, made = _usage(reply, conv)
        thought = sum(_tokens(b.text) for b in reply.blocks if isinstance(b, Think))
        usage = {
            "input_tokens": spent,
            "input_tokens_details": {"cached_tokens": _cached(conv)},
            "output_tokens": made,
            "output_tokens_details": {"reasoning_tokens": thought},
            "total_tokens": spent + made,
        }
        whole = response | {"status": "completed", "output": output, "usage": usage}
        if reply.stop is None:
            return whole
        return whole | {"status": "incomplete", "incomplete_details": {"reason": _STOPS[reply.stop]}}

    def broken_off(self, words: str) -> Frame:
        error = {"code": "server_error", "message": words}
        return Frame({"type": "response.failed", "response": {"status": "failed", "error": error}}, "response.failed")

    @staticmethod
    def _item(block: Say | Think | Call, conv: Conversation) -> Json:
        if isinstance(block, Think):
            return {
                "id": _new_id("rs"),
                "type": "reasoning",
                "summary": [{"type": "summary_text", "text": block.text}],
                "encrypted_content": _signature(conv, block.text),
            }
        if isinstance(block, Say):
            return {
                "id": _new_id("msg"),
                "type": "message",
                "status": "completed",
                "role": "assistant",
                "content": [{"type": "output_text", "text": block.text, "annotations": []}],
            }
        base = {"status": "completed", "call_id": _new_id("call"), "name": block.tool.name}
        if block.tool.namespace:
            base["namespace"] = block.tool.namespace
        if block.tool.finds_tools:
            return base | {
                "id": _new_id("tsc"),
                "type": "tool_search_call",
                "execution": "client",
                "arguments": block.arguments,
            }
        if block.tool.freeform:
            return base | {
                "id": _new_id("ctc"),
                "type": "custom_tool_call",
                "input": block.arguments,
            }
        return base | {
            "id": _new_id("fc"),
            "type": "function_call",
            "arguments": block.written,
        }

    @staticmethod
    def _blank(item: Json) -> Json:
        blank = item | {"status": "in_progress"}
        for name, empty in (("summary", []), ("content", []), ("arguments", ""), ("input", "")):
            if name in blank:
                blank[name] = empty
        return blank
