"""A tiny agent: JSON lines both ways; each line of a prompt is something it does.

say TEXT, raw HEX, line BYTES (one frame of that size), flood BYTES (many frames), frame JSON, ask ID, done OUTCOME,
stderr TEXT, env NAME, exit CODE, close (closes its output), deaf (never reads again), obey (waits for an interrupt).
`-start VERB` makes it do one of these before it is ready.
"""

import json
import os
import signal
import sys
import time
from typing import Any

OUT = sys.stdout.buffer


def main() -> None:
    if sys.argv[1:2] == ["-start"]:
        act(" ".join(sys.argv[2:]))
    tell({"ready": f"native-{os.getpid()}"})
    while True:
        order = hear()
        for action in order.get("prompt", order.get("steer", "")).split("\n"):
            act(action)


def hear() -> Any:
    line = sys.stdin.buffer.readline()
    if not line:
        sys.exit(0)
    return json.loads(line)


def tell(frame: dict[str, Any]) -> None:
    OUT.write(json.dumps(frame).encode() + b"\n")
    OUT.flush()


def act(action: str) -> None:
    verb, _, rest = action.partition(" ")
    match verb:
        case "say":
            tell({"say": rest})
        case "raw":
            OUT.write(bytes.fromhex(rest) + b"\n")
            OUT.flush()
        case "line":
            tell({"say": "x" * int(rest)})
        case "flood":
            frame = json.dumps({"say": "x" * 1000}).encode() + b"\n"
            for _ in range(int(rest) // len(frame)):
                OUT.write(frame)
        case "frame":
            tell(json.loads(rest))
        case "ask":
            tell({"ask": rest})
            tell({"say": json.dumps(hear(), sort_keys=True)})
        case "done":
            tell({"done": rest})
        case "stderr":
            print(rest, file=sys.stderr, flush=True)
        case "env":
            tell({"say": os.environ.get(rest, "(not set)")})
        case "names":
            tell({"say": " ".join(sorted(os.environ))})
        case "exit":
            os._exit(int(rest))
        case "close":
            os.close(1)
            time.sleep(600)
        case "deaf":
            for number in (signal.SIGINT, signal.SIGTERM):
                signal.signal(number, signal.SIG_IGN)
            time.sleep(600)
        case "obey":
            heard = hear()
            tell({"say": json.dumps(heard, sort_keys=True)})
            tell({"done": "interrupted"})


main()
