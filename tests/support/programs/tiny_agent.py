"""A coding agent of a hundred lines that speaks ACP and has one tool; its model is found by OPENAI_BASE_URL.

With the argument `stranger` it refuses every session.
"""

import json
import os
import re
import subprocess
import sys
import urllib.request
from itertools import count
from typing import Any

SHELL = {
    "type": "function",
    "function": {
        "name": "bash",
        "description": "Runs a command.",
        "parameters": {"type": "object", "properties": {"command": {"type": "string"}}, "required": ["command"]},
    },
}
_ids = count(1)


def send(**message: Any) -> None:
    """One line to the client."""
    print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)


def update(**fields: Any) -> None:
    """Tell what happens in the session."""
    send(method="session/update", params={"sessionId": "tiny", "update": fields})


def ask_model(messages: list[dict[str, Any]]) -> dict[str, Any]:
    """One answer of the model."""
    body = {"model": "any", "messages": messages, "tools": [SHELL]}
    request = urllib.request.Request(
        os.environ["OPENAI_BASE_URL"] + "/chat/completions",
        json.dumps(body).encode(),
        {"content-type": "application/json"},
    )
    with urllib.request.urlopen(request) as response:
        message: dict[str, Any] = json.load(response)["choices"][0]["message"]
    return message


def allowed(call: dict[str, Any]) -> bool:
    """Ask the person; answers nothing else meanwhile."""
    options = [{"optionId": kind, "name": kind, "kind": kind} for kind in ("allow_once", "reject_once")]
    params = {"sessionId": "tiny", "toolCall": call, "options": options}
    send(id=f"ask-{next(_ids)}", method="session/request_permission", params=params)
    outcome = json.loads(sys.stdin.readline()).get("result", {}).get("outcome", {})
    return bool(outcome.get("optionId") == "allow_once")


def run(tool: dict[str, Any]) -> str:
    """Run the command of a tool call, if the person agrees."""
    command = json.loads(tool["function"]["arguments"])["command"]
    call = {"toolCallId": tool["id"], "title": command, "kind": "execute", "rawInput": {"command": command}}
    update(sessionUpdate="tool_call", status="pending", **call)
    output, status = "The person said no.", "failed"
    if allowed(call):
        done = subprocess.run(command, shell=True, capture_output=True, text=True, check=False)
        output, status = done.stdout + done.stderr, "failed" if done.returncode else "completed"
    content = [{"type": "content", "content": {"type": "text", "text": output}}]
    update(sessionUpdate="tool_call_update", toolCallId=tool["id"], status=status, content=content)
    return output


def turn(history: list[dict[str, Any]]) -> None:
    """Go on until the model calls no tool."""
    while True:
        message = ask_model(history)
        history.append(message)
        for word in re.findall(r"\S+\s*", message.get("content") or ""):
            update(sessionUpdate="agent_message_chunk", content={"type": "text", "text": word})
        tools = message.get("tool_calls") or []
        for tool in tools:
            history.append({"role": "tool", "tool_call_id": tool["id"], "content": run(tool)})
        if not tools:
            return


def main() -> None:
    """Answer requests until the input ends."""
    history: list[dict[str, Any]] = []
    for line in sys.stdin:
        message = json.loads(line)
        match message.get("method"):
            case "initialize":
                result: dict[str, Any] = {"protocolVersion": 1, "agentCapabilities": {}}
            case "session/new" if "stranger" in sys.argv:
                send(id=message["id"], error={"code": -32000, "message": "I do not know you."})
                continue
            case "session/new":
                result = {"sessionId": "tiny"}
            case "session/prompt":
                text = "\n".join(block.get("text", block.get("uri", "")) for block in message["params"]["prompt"])
                history.append({"role": "user", "content": text})
                turn(history)
                result = {"stopReason": "end_turn"}
            case _:
                continue
        send(id=message["id"], result=result)


if __name__ == "__main__":
    main()
