"""An agent that speaks ACP and says what its prompt tells it to: JSON updates, in which `@N` is a text that long."""

import json
import sys
from typing import Any

SESSION = "loud"


def tell(**message: Any) -> None:
    print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)


def grown(value: Any) -> Any:
    """The value with long texts in place of `@N`, and N times the same in place of `{"@times": N, "value": ...}`."""
    match value:
        case str() if value.startswith("@"):
            return "x" * int(value[1:])
        case {"@times": int(times), "value": same}:
            return [grown(same)] * times
        case dict():
            return {name: grown(inner) for name, inner in value.items()}
        case list():
            return [grown(inner) for inner in value]
        case _:
            return value


def answer(request: dict[str, Any]) -> dict[str, Any]:
    match request["method"]:
        case "initialize":
            return {"protocolVersion": 1, "agentCapabilities": {}}
        case "session/new":
            return {"sessionId": SESSION}
        case "session/prompt":
            for update in grown(json.loads(request["params"]["prompt"][-1]["text"])):
                tell(method="session/update", params={"sessionId": SESSION, "update": update})
            return {"stopReason": "end_turn"}
        case _:
            return {}


for line in sys.stdin:
    request = json.loads(line)
    if "id" in request:
        tell(id=request["id"], result=answer(request))
