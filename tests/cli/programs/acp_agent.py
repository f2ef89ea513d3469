"""The smallest agent that speaks ACP: it repeats what it is told, and who it is."""

import json
import os
import sys
from typing import Any


def tell(**message: Any) -> None:
    print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)


def answer(request: dict[str, Any]) -> dict[str, Any]:
    match request["method"]:
        case "initialize":
            return {"protocolVersion": 1, "agentCapabilities": {}}
        case "session/new":
            return {"sessionId": "echo"}
        case "session/prompt":
            words = request["params"]["prompt"][0]["text"]
            content = {"type": "text", "text": f"{os.environ['NICKNAME']} {sys.argv[1]}: {words}"}
            update = {"sessionUpdate": "agent_message_chunk", "content": content}
            tell(method="session/update", params={"sessionId": "echo", "update": update})
            return {"stopReason": "end_turn"}
        case _:
            return {}


for line in sys.stdin:
    request = json.loads(line)
    if "id" in request:
        tell(id=request["id"], result=answer(request))
