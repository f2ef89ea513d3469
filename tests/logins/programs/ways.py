"""An agent that speaks ACP and tells its ways to log in itself; a prompt says who is in. The code 1234 is right."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

STORED = Path(os.environ["HOME"], ".ways", "auth.json")
METHODS = [
    17,
    {"id": {"not": "a text"}},
    {"id": "prints", "name": "Sign in with a page", "description": "Prints an address and reads a line."},
    {"id": "asks", "name": "Sign in by questions", "_meta": {"type": "agent"}},
    {"id": "opens", "name": "Sign in with a browser"},
    {"id": "lies", "name": "Sign in and fail quietly"},
    {"id": "dies", "name": "Sign in and die"},
    {"id": "terminal", "name": "Sign in at a terminal", "type": "terminal", "args": ["login"], "env": {"WHO": "tty"}},
    {"id": "variable", "name": "A token", "type": "env_var", "vars": [{"name": "WAYS_TOKEN"}, {"name": "not one"}]},
    {"id": "key", "name": "A key", "_meta": {"api-key": {"provider": "somebody"}}},
]
ADDRESS = f"https://login.example/start?token=s3cr3t&pid={os.getpid()}&child={os.getpid()}"


class Refused(Exception):
    """Why somebody is not let in."""


def tell(**message: Any) -> None:
    print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)


def hear() -> dict[str, Any]:
    heard: dict[str, Any] = json.loads(sys.stdin.readline())
    return heard


def store(name: str) -> None:
    STORED.parent.mkdir(parents=True, exist_ok=True)
    STORED.write_text(json.dumps({"name": name}))


def check(code: str) -> None:
    if code.strip() != "1234":
        raise Refused("wrong code?token=s3cr3t")


def ask(**params: Any) -> dict[str, Any]:
    tell(id="ask", method="elicitation/create", params=params)
    result: dict[str, Any] = hear()["result"]
    return result


def authenticate(way: str) -> None:
    match way:
        case "prints":
            print(f"\x1b[2JOpen {ADDRESS} and enter WAYS-1111", file=sys.stderr, flush=True)
            sys.stdout.write("Paste the code: ")
            sys.stdout.flush()
            check(sys.stdin.readline())
        case "asks":
            assert ask(mode="url", url=ADDRESS, message="Enter WAYS-2222 there")["action"] == "accept"
            schema = {"type": "object", "properties": {"pin": {"type": "string"}}}
            check(ask(mode="form", message="The pin", requestedSchema=schema)["content"]["pin"])
        case "opens":
            subprocess.run([os.environ["BROWSER"], ADDRESS], check=True)
            sys.stdout.write("Paste the code: ")
            sys.stdout.flush()
            check(sys.stdin.readline())
        case "lies":
            print("Authentication failed: no such account", flush=True)
            return
        case "dies":
            print("It hurts.", file=sys.stderr, flush=True)
            os._exit(3)
    store(way)


def log_in() -> int:
    print(f"Open {ADDRESS}")
    check(input("Paste the code: "))
    store(os.environ["WHO"])
    return 0


def who() -> str:
    stored = json.loads(STORED.read_text())["name"] if STORED.exists() else None
    return f"token {os.environ.get('WAYS_TOKEN')} login {stored}"


def answer(method: str, params: dict[str, Any]) -> dict[str, Any]:
    match method:
        case "initialize":
            capable = params["clientCapabilities"].get("auth", {}).get("terminal", False)
            return {"protocolVersion": 1, "agentCapabilities": {}, "authMethods": METHODS if capable else []}
        case "authenticate":
            authenticate(params["methodId"])
            return {}
        case "session/new":
            return {"sessionId": "ways"}
        case "session/prompt":
            content = {"type": "text", "text": who()}
            update = {"sessionUpdate": "agent_message_chunk", "content": content}
            tell(method="session/update", params={"sessionId": "ways", "update": update})
            return {"stopReason": "end_turn"}
        case _:
            return {}


def serve() -> None:
    for line in iter(sys.stdin.readline, ""):
        request = json.loads(line)
        if "id" not in request:
            continue
        try:
            tell(id=request["id"], result=answer(request["method"], request["params"]))
        except Refused as error:
            tell(id=request["id"], error={"code": -32000, "message": str(error)})


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["login"]:
            sys.exit(log_in())
        case ["silent"]:
            sys.exit("I cannot start without my configuration")
        case _:
            serve()
