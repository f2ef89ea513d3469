"""Triggers and prompts over plain HTTP, for tests of what begins or is reported by itself."""

import hashlib
import hmac
import json
from typing import Any

import httpx

SECRET = "ostler-test-secret"


def push(api: httpx.Client, name: str = "triage", prompt: str = "mock: say Looked at {{ inputs.number }}") -> None:
    manifest = f'name = "{name}"\nprompt = "{prompt}"\n[variables.number]\ntype = "integer"\n[variables.title]\n'
    files = [{"path": "template.toml", "text": manifest}, {"path": "agent.toml", "text": 'agent = "mock"'}]
    assert api.post("/templates", json={"files": files}).status_code in {200, 201}


def store(api: httpx.Client, name: str, manifest: str, agent: str = "mock") -> None:
    """A template with this manifest below its name; without an agent if that is empty."""
    files = [{"path": "template.toml", "text": f'name = "{name}"\n{manifest}\n'}]
    if agent:
        files.append({"path": "agent.toml", "text": f'agent = "{agent}"'})
    answered = api.post("/templates", json={"files": files})
    assert answered.status_code in {200, 201}, answered.text


def create(api: httpx.Client, name: str, scheme: str = "github", **more: Any) -> dict[str, Any]:
    body = {"name": name, "template": "triage", "signature": {"scheme": scheme, "secret": SECRET}, **more}
    answered = api.post("/triggers", json={key: value for key, value in body.items() if value is not None})
    assert answered.status_code == 201, answered.text
    made: dict[str, Any] = answered.json()
    return made


def send(api: httpx.Client, trigger: dict[str, Any], event: object, name: str, secret: str = SECRET) -> httpx.Response:
    """As GitHub sends."""
    body = json.dumps(event).encode()
    signature = "sha256=" + hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()
    headers = {"content-type": "application/json", "x-github-delivery": name, "x-hub-signature-256": signature}
    return api.post(f"/triggers/{trigger['id']}/deliveries", content=body, headers=headers)


def deliveries(api: httpx.Client, name: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = api.get(f"/triggers/{name}/deliveries").json()["items"]
    return found


def said(api: httpx.Client, session: str, *texts: str) -> None:
    for text in texts:
        sent = api.post(f"/sessions/{session}/messages", json={"message": f"mock: say {text}"})
        assert sent.status_code in {200, 201, 202}, sent.text


def new_session(api: httpx.Client, **more: Any) -> str:
    return str(api.post("/sessions", json={"agent": "mock", **more}).json()["id"])
