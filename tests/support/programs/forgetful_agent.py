"""An agent that speaks ACP and cannot load a conversation: it repeats every text of the prompt it is given."""

import json
import sys
from typing import Any


def tell(**message: Any) -> None:
    print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)


def answer(request: dict[str, Any]) -> dict[str, Any]:
    match request["method"]:
        case "initialize":
            return {"protocolVersion": 1, "agentCapabilities": {}}
        case "session/new":
            return {"sessionId": sys.argv[1]}
        case "session/prompt":
            heard = [part["text"] for part in request["params"]["prompt"]]
            content = {"type": "text", "text": json.dumps(heard)}
            update = {"sessionUpdate": "agent_message_chunk", "content": content}
            tell(method="session/update", params={"sessionId": sys.argv[1], "update": update})
            return {"stopReason": "end_turn"}
        case _:
            return {}


for line in sys.stdin:
    request = json.loads(line)
    if "id" in request:
        tell(id=request["id"], result=answer(request))
