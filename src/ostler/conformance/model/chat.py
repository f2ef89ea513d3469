"""OpenAI Chat Completions."""

from __future__ import annotations

import time
from collections.abc import Iterator

from ostler.conformance.model.actions import Call, Reply, Say, Think
from ostler.conformance.model.conversation import Conversation, Json, Tool, TurnList
from ostler.conformance.model.dialect import Frame, _cached, _chunks, _halves, _new_id, _paced, _usage
from ostler.conformance.model.responses import OpenAIErrors

_STOPS = {"refusal": "content_filter", "length": "length"}


class ChatCompletions(OpenAIErrors):
    """OpenAI Chat Completions."""

    def parse(self, body: Json, path: str) -> Conversation:
        turns = TurnList()
        system = ""
        for message in body.get("messages", ()):
            content = message.get("content") or ""
            images = 0
            if isinstance(content, list):
                images = sum(c.get("type") == "image_url" for c in content)
                content = "\n".join(c.get("text", "") for c in content if "text" in c)
            match message["role"]:
                case "system" | "developer":
                    system += content + "\n"
                case "assistant":
                    turns.say("model", content)
                    turns.at("model").calls += len(message.get("tool_calls") or ())
                case "tool":
                    turns.at("user").results.append(content)
                case _:
                    turns.say("user", content)
                    turns.at("user").images += images
        tools = [
            Tool(t["function"]["name"], t["function"].get("parameters") or {})
            for t in body.get("tools") or ()
            if t.get("type", "function") == "function"
        ]
        return Conversation(body.get("model", ""), bool(body.get("stream")), system, turns.turns, tools)

    def stream(self, reply: Reply, conv: Conversation) -> Iterator[Frame]:
        base = {
            "id": _new_id("chatcmpl"),
            "object": "chat.completion.chunk",
            "created": int(time.time()),
            "model": conv.model,
        }

        def frame(delta: Json, pause: float = 0.0, finish: str | None = None) -> Frame:
            choice = {"index": 0, "delta": delta, "finish_reason": finish}
            return Frame(base | {"choices": [choice]}, pause=pause)

        yield frame({"role": "assistant", "content": ""})
        calls = 0
        for block, pause in _paced(reply):
            if isinstance(block, Call):
                head = self._call(block) | {"index": calls}
                body = head["function"]["arguments"]
                head["function"] = head["function"] | {"arguments": ""}
                yield frame({"tool_calls": [head]}, pause)
                for half in _halves(body):
                    yield frame({"tool_calls": [{"index": calls, "function": {"arguments": half}}]})
                calls += 1
                continue
            name = "reasoning_content" if isinstance(block, Think) else "content"
            for index, (text, wait) in enumerate(_chunks(block)):
                yield frame({name: text}, wait if index else pause + wait)
        yield frame({}, finish=_STOPS.get(reply.stop or "", "tool_calls" if calls else "stop"))
        yield Frame(base | {"choices": [], "usage": self._usage(reply, conv)})
        yield Frame("[DONE]")

    def broken_off(self, words: str) -> Frame:
        return Frame({"error": {"message": words, "code": 502}, "choices": []})

    def whole(self, reply: Reply, conv: Conversation) -> Json:
        blocks = [block for block, _ in _paced(reply)]
        message: Json = {
            "role": "assistant",
            "content": "".join(b.text for b in blocks if isinstance(b, Say)) or None,
        }
        if thought := "".join(b.text for b in blocks if isinstance(b, Think)):
            message["reasoning_content"] = thought
        if calls := [self._call(b) for b in blocks if isinstance(b, Call)]:
            message["tool_calls"] = calls
        finish = "tool_calls" if calls else "stop"
        return {
            "id": _new_id("chatcmpl"),
            "object": "chat.completion",
            "created": int(time.time()),
            "model": conv.model,
            "choices": [{"index": 0, "message": message, "finish_reason": finish}],
            "usage": self._usage(reply, conv),
        }

    @staticmethod
    def _call(block: Call) -> Json:
        function = {"name": block.tool.name, "arguments": block.written}
        return {"id": _new_id("call"), "type": "function", "function": function}

    @staticmethod
    def _usage(reply: Reply, conv: Conversation) -> Json:
        spent, made = _usage(reply, conv)
        return {
            "prompt_tokens": spent,
            "completion_tokens": made,
            "total_tokens": spent + made,
            "prompt_tokens_details": {"cached_tokens": _cached(conv)},
        }
