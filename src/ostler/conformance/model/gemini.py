"""Gemini."""

from __future__ import annotations

import json
from collections.abc import Iterator

from ostler.conformance.model.actions import Call, Reply, Say, Think
from ostler.conformance.model.conversation import Conversation, Json, Tool, TurnList
from ostler.conformance.model.dialect import Dialect, Frame, _cached, _chunks, _paced, _usage, signature

_STOPS = {"refusal": "SAFETY", "length": "MAX_TOKENS"}


def _signed(conv: Conversation, call: Call) -> Json:
    return {"thoughtSignature": signature(conv.model, f"{call.tool.name} {json.dumps(call.arguments)}")}


class Gemini(Dialect):
    """Gemini generateContent."""

    def parse(self, body: Json, path: str) -> Conversation:
        turns = TurnList()
        for content in body.get("contents", ()):
            side = "model" if content.get("role") == "model" else "user"
            for part in content.get("parts", ()):
                if "functionCall" in part:
                    turns.at(side).calls += 1
                elif "functionResponse" in part:
                    answer = part["functionResponse"].get("response", {})
                    text = answer.get("output") or answer.get("error") or json.dumps(answer)
                    turns.at(side).results.append(str(text))
                elif "inlineData" in part or "fileData" in part:
                    turns.at(side).images += 1
                elif part.get("text") and not part.get("thought"):
                    turns.say(side, part["text"])
                else:
                    turns.at(side)
        system = body.get("systemInstruction") or {}
        parts = system.get("parts", ()) if isinstance(system, dict) else ()
        tools = [
            Tool(f["name"], f.get("parametersJsonSchema") or f.get("parameters") or {})
            for t in body.get("tools") or ()
            for f in t.get("functionDeclarations", ())
        ]
        model = path.rpartition("/models/")[2].partition(":")[0]
        return Conversation(
            model,
            "streamGenerateContent" in path,
            "\n".join(p.get("text", "") for p in parts),
            turns.turns,
            tools,
        )

    def stream(self, reply: Reply, conv: Conversation) -> Iterator[Frame]:
        signed = False
        for block, pause in _paced(reply):
            if isinstance(block, Call) and conv.signs and not signed:  # the first of those that are made together
                signed = True
                yield Frame(self._chunk(conv, [self._part(block) | _signed(conv, block)]), pause=pause)
                continue
            if not isinstance(block, Say):  # calls and thought summaries come in one part
                yield Frame(self._chunk(conv, [self._part(block)]), pause=pause)
                continue
            for index, (text, wait) in enumerate(_chunks(block)):
                yield Frame(self._chunk(conv, [{"text": text}]), pause=wait if index else pause + wait)
        yield Frame(self._chunk(conv, [{"text": ""}], reply))

    def whole(self, reply: Reply, conv: Conversation) -> Json:
        return self._chunk(conv, [self._part(block) for block, _ in _paced(reply)], reply)

    @staticmethod
    def _part(block: Say | Think | Call) -> Json:
        if isinstance(block, Call):
            return {"functionCall": {"name": block.tool.name, "args": block.arguments}}
        if isinstance(block, Think):
            return {"text": f"**Thinking**\n\n{block.text}", "thought": True}
        return {"text": block.text}

    @staticmethod
    def _chunk(conv: Conversation, parts: list[Json], reply: Reply | None = None) -> Json:
        """A response chunk; the last one (with `reply`) also finishes and counts."""
        candidate: Json = {"content": {"role": "model", "parts": parts}, "index": 0}
        chunk: Json = {"candidates": [candidate], "modelVersion": conv.model}
        if reply is not None:
            spent, made = _usage(reply, conv)
            candidate["finishReason"] = _STOPS.get(reply.stop or "", "STOP")
            chunk["usageMetadata"] = {
                "promptTokenCount": spent,
                "candidatesTokenCount": made,
                "totalTokenCount": spent + made,
                **({"cachedContentTokenCount": _cached(conv)} if _cached(conv) else {}),
            }
        return chunk

    def broken_off(self, words: str) -> Frame:
        return Frame({"error": {"code": 503, "message": words, "status": "UNAVAILABLE"}})

    def error(self, status: int) -> Json:
        names = {401: "UNAUTHENTICATED", 403: "PERMISSION_DENIED", 429: "RESOURCE_EXHAUSTED"}
        return {
            "error": {
                "code": status,
                "message": f"Scripted error {status}",
                "status": names.get(status, "INTERNAL"),
            }
        }
