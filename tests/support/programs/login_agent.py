"""An agent that speaks ACP and has a login: `login` asks for a code, `status` tells, and a prompt says who is in.

The code 1234 is right. With `status` a key is good unless it is `wrong`.
"""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

STORED = Path(os.environ["HOME"], ".guest", "auth.json")


def log_in() -> int:
    signal.signal(signal.SIGHUP, signal.SIG_IGN)  # so that only force ends it
    child = subprocess.Popen(["/bin/sleep", "600"], start_new_session=True)
    print(f"\x1b[1mWelcome\x1b[0m, process {os.getpid()} in {Path.cwd().name} {os.get_terminal_size().columns}")
    print(
        f"Open https://login.example/start?token=s3cr3t&pid={os.getpid()}&child={child.pid} and enter GUEST-{'7' * 4}"
    )
    code = input("Paste the code: ")
    child.kill()
    if code != "1234":
        print("Login failed: wrong code?token=s3cr3t")
        return 1
    STORED.parent.mkdir(parents=True, exist_ok=True)
    STORED.write_text(json.dumps({"name": "guest"}))
    print("Welcome.")
    return 0


def status() -> int:
    return 0 if STORED.exists() or os.environ.get("GUEST_KEY", "wrong") != "wrong" else 1


def who() -> str:
    key = os.environ.get("GUEST_KEY")
    stored = json.loads(STORED.read_text())["name"] if STORED.exists() else None
    return f"key {key} login {stored}"


def tell(**message: Any) -> None:
    print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)


def answer(request: dict[str, Any]) -> dict[str, Any]:
    match request["method"]:
        case "initialize":
            return {"protocolVersion": 1, "agentCapabilities": {}}
        case "session/new":
            return {"sessionId": "echo"}
        case "session/prompt":
            content = {"type": "text", "text": who()}
            update = {"sessionUpdate": "agent_message_chunk", "content": content}
            tell(method="session/update", params={"sessionId": "echo", "update": update})
            return {"stopReason": "end_turn"}
        case _:
            return {}


def serve() -> None:
    for line in sys.stdin:
        request = json.loads(line)
        if "id" not in request:
            continue
        if request["method"] == "session/prompt" and status() != 0:
            signal.signal(signal.SIGINT, signal.SIG_IGN)  # so that it is still there when the next prompt comes
            tell(id=request["id"], error={"code": -32000, "message": "Authentication required"})
        else:
            tell(id=request["id"], result=answer(request))


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["login"]:
            sys.exit(log_in())
        case ["status"]:
            sys.exit(status())
        case ["hang"]:
            time.sleep(600)
        case _:
            serve()
