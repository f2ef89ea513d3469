"""What real providers refuse in the history of a conversation."""

from __future__ import annotations

import json
from collections.abc import Iterator

from ostler.conformance.model.conversation import Json
from ostler.conformance.model.dialect import signature

UNSIGNED = "skip_thought_signature_validator"


def objection_to(body: Json, path: str = "") -> str | None:
    """Why a request is refused; None if it is not."""
    model = body.get("model") or path.rpartition("/models/")[2].partition(":")[0]
    if "contents" in body:
        found = _gemini(body["contents"], model)
    elif "input" in body:
        found = _responses(body["input"], model)
    elif any(message.get("role") in {"tool", "system"} for message in body.get("messages", ())):
        found = _chat(body["messages"])
    else:
        found = _anthropic(body.get("messages", ()), model)
    return next(found, None)


def _anthropic(messages: list[Json], model: str) -> Iterator[str]:
    open_calls: list[str] = []
    for number, message in enumerate(messages):
        blocks = message["content"] if isinstance(message["content"], list) else []
        for block in blocks:
            if block.get("type") == "text" and not block["text"].strip():
                yield f"messages.{number}: text content blocks must be non-empty"
            if block.get("type") == "thinking" and block.get("signature") != signature(model, block["thinking"]):
                yield f"messages.{number}: Invalid `signature` in `thinking` block"
        results = [block["tool_use_id"] for block in blocks if block.get("type") == "tool_result"]
        if results != open_calls:
            yield f"messages.{number}: `tool_use` ids {open_calls} without matching `tool_result` blocks ({results})"
        open_calls = [block["id"] for block in blocks if block.get("type") == "tool_use"]
    if open_calls:
        yield f"`tool_use` ids were found without `tool_result` blocks at the end: {open_calls}"


def _chat(messages: list[Json]) -> Iterator[str]:
    waiting: list[str] = []
    for number, message in enumerate(messages):
        if message["role"] == "tool":
            if message["tool_call_id"] not in waiting:
                yield f"messages.[{number}]: 'tool' must follow a message with that 'tool_calls'"
            waiting = [each for each in waiting if each != message["tool_call_id"]]
            continue
        if waiting:
            yield f"messages.[{number}]: tool_call_ids without response messages: {waiting}"
        waiting = [call["id"] for call in message.get("tool_calls") or ()]
        if message["role"] == "assistant" and not waiting and not message.get("content"):
            yield f"messages.[{number}]: an assistant message needs content"


def _responses(items: list[Json], model: str) -> Iterator[str]:
    calls: list[str] = []
    for number, item in enumerate(items):
        kind = item.get("type")
        if kind == "reasoning":
            following = items[number + 1].get("type") if number + 1 < len(items) else None
            thought = "\n\n".join(part["text"] for part in item["summary"])
            if following not in {"message", "function_call", "reasoning"}:
                yield f"Item '{item.get('id')}' of type 'reasoning' was provided without its required following item."
            if item.get("encrypted_content") != signature(model, thought):
                yield f"The encrypted content of item {item.get('id')} could not be verified."
        elif kind == "function_call":
            calls.append(item["call_id"])
        elif kind == "function_call_output":
            if item["call_id"] not in calls:
                yield f"No tool call found for function call output with call_id {item['call_id']}."
            calls = [call for call in calls if call != item["call_id"]]
        elif calls and item.get("role") == "user":
            yield f"No tool output found for function call {calls[0]}."
    if calls:
        yield f"No tool output found for function call {calls[0]}."


def _gemini(contents: list[Json], model: str) -> Iterator[str]:
    waiting: list[str] = []
    for number, content in enumerate(contents):
        parts = content.get("parts") or []
        called = [part for part in parts if "functionCall" in part]
        answered = [part["functionResponse"]["name"] for part in parts if "functionResponse" in part]
        if answered != waiting:
            yield f"contents[{number}]: function response parts must equal the function call parts of the turn before"
        if called and called[0].get("thoughtSignature") not in {_signed(called[0], model), UNSIGNED}:
            yield f"contents[{number}]: Function call is missing a thought_signature in functionCall parts."
        waiting = [part["functionCall"]["name"] for part in called]
    if waiting:
        yield "function calls without responses at the end"


def _signed(part: Json, model: str) -> str:
    call = part["functionCall"]
    return signature(model, f"{call['name']} {json.dumps(call['args'])}")
