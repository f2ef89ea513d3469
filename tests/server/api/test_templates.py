"""Templates: stored, compared and given back; and what begins with one."""

from typing import Any

import httpx
import pytest

from tests.support.http_helpers import assert_problem
from tests.support.patience import wait_until

MANIFEST = """
name = "NAME"
description = "Greets people"
prompt = "mock: say Hello {{ inputs.who }}"
[variables.who]
required = true
[variables.times]
type = "integer"
default = 1
"""


def files(name: str, **more: str) -> list[dict[str, Any]]:
    texts = {
        "template.toml": MANIFEST.replace("NAME", name),
        "AGENTS.md": "Be kind to {{ inputs.who }}.\r\n",
        "agent.toml": 'agent = "mock"\npermission_mode = "plan"\n[agents.mock]\nmodel = "mock-large"\n',
        "skills/bow/SKILL.md": "---\nname: bow\ndescription: Bows deeply\n---\nBow.\n",
        **more,
    }
    return [{"path": path, "text": text} for path, text in texts.items()]


def push(api: httpx.Client, name: str, **more: Any) -> dict[str, Any]:
    answered = api.post("/templates", json={"files": files(name), **more})
    assert answered.status_code in {200, 201}, answered.text
    found: dict[str, Any] = answered.json()
    return found


def test_a_folder_is_given_back_byte_for_byte(api: httpx.Client) -> None:
    sent = [
        *files("bytes"),
        {"path": "assets/logo.png", "base64": "iVBORwD/"},
        {"path": "skills/bow/scripts/go.sh", "text": "#!/bin/sh\n", "executable": True},
    ]
    pushed = api.post("/templates", json={"files": sent, "tags": ["stable"]})
    assert pushed.status_code == 201
    assert pushed.headers["location"] == f"/api/v1/templates/bytes/revisions/{pushed.json()['revision']}"
    exported = api.get("/templates/bytes/revisions/stable/files").json()["files"]
    assert exported == sorted(sent, key=lambda file: file["path"])
    again = api.post("/templates", json={"files": list(reversed(exported))})
    assert (again.status_code, again.json()["revision"]) == (200, pushed.json()["revision"])


def test_tags_move_and_revisions_do_not(api: httpx.Client) -> None:
    first = push(api, "moving", tags=["stable"])["revision"]
    changed = files("moving", **{"AGENTS.md": "Be brief.\n"})
    second = api.post("/templates", json={"files": changed}).json()["revision"]
    revisions = api.get("/templates/moving/revisions").json()["items"]
    assert [(each["revision"], each["tags"]) for each in revisions] == [(second, ["latest"]), (first, ["stable"])]
    (change,) = api.get("/templates/moving/diff", params={"old": "stable"}).json()["changes"]
    assert (change["path"], change["change"]) == ("AGENTS.md", "changed")
    assert "+Be brief." in change["diff"]
    assert api.post("/templates/moving/tags", json={"tag": "stable", "revision": second}).status_code == 200
    assert api.get("/templates/moving/revisions/stable").json()["revision"] == second
    assert_problem(api.get("/templates/moving/revisions/beta"), "revision_not_found")
    assert api.delete("/templates/moving").status_code == 204
    assert_problem(api.get("/templates/moving"), "template_not_found")


def test_everything_that_is_wrong_is_told_at_once(api: httpx.Client) -> None:
    sent = files(
        "Wrong Name",
        **{
            "../out": "",
            ".git/config": "",
            "AGENTS.md": "{{ inputs.nobody }}",
            "agent.toml": 'agnet = "mock"\npermission_mode = "all"\n',
            "skills/bow/SKILL.md": "---\nname: other\ndescription: x\n---\nBow.\n",
            "tools.json": '{"mcpServers": {"x": {"url": "http://a", "headers": {"a": "Bearer abcdefghijkl"}}}}',
        },
    )
    problem = assert_problem(api.post("/templates", json={"files": sent}), "template_invalid")
    assert set(problem["errors"]) == {
        "../out",
        ".git/config",
        "AGENTS.md, line 1",
        "agent.toml: agnet",
        "agent.toml: permission_mode",
        "skills/bow/SKILL.md: name",
        "template.toml: name",
        "tools.json: x",
    }
    assert api.post("/templates", json={"files": files("looked"), "check": True}).status_code == 200
    assert_problem(api.get("/templates/looked"), "template_not_found")


def test_letters_that_base64_does_not_have_are_refused(api: httpx.Client) -> None:
    sent = [*files("odd"), {"path": "logo.png", "base64": "é="}]
    assert set(assert_problem(api.post("/templates", json={"files": sent}), "template_invalid")["errors"]) == {
        "logo.png"
    }


def test_a_session_has_what_its_template_says_unless_the_request_says_otherwise(api: httpx.Client) -> None:
    revision = push(api, "filling", tags=["v1"])["revision"]
    body = {"template": "filling@v1", "inputs": {"who": "Ann"}, "labels": {"a": "b"}}
    session = api.post("/sessions", json=body).json()
    assert (session["agent"]["type"], session["permissionMode"], session["model"]) == ("mock", "plan", "mock-large")
    assert session["instructions"] == "Be kind to Ann.\n\n# Skill: bow\n\nBows deeply\n\nBow."
    assert session["labels"] == {"a": "b", "template": f"filling@{revision}"}
    other = api.post("/sessions", json={**body, "permissionMode": "default", "instructions": "Mine."}).json()
    assert (other["permissionMode"], other["instructions"], other["model"]) == ("default", "Mine.", "mock-large")


@pytest.mark.parametrize(
    ("inputs", "field", "words"),
    [
        ({}, "inputs.who", "is required"),
        ({"who": 1}, "inputs.who", "must be of type string"),
        ({"who": "Ann", "times": True}, "inputs.times", "must be of type integer"),
        ({"who": "Ann", "else": 1}, "inputs.else", "is no variable"),
        ({"who": "ghp_0123456789abcdefghij"}, "inputs.who", "looks like a credential"),
    ],
)
def test_inputs_are_checked(api: httpx.Client, inputs: dict[str, Any], field: str, words: str) -> None:
    push(api, "checked")
    answered = api.post("/sessions", json={"template": "checked", "inputs": inputs})
    problem = assert_problem(answered, "unprocessable")
    assert list(problem["errors"]) == [field]
    assert words in problem["detail"]


def test_a_session_without_agent_and_template_is_refused(api: httpx.Client) -> None:
    assert_problem(api.post("/sessions", json={}), "invalid_request", field="agent")
    assert_problem(api.post("/sessions", json={"agent": "mock", "inputs": {"a": 1}}), "invalid_request", field="inputs")
    assert_problem(api.post("/tasks", json={"prompt": "x"}), "invalid_request", field="agent")
    assert_problem(api.post("/tasks", json={"agent": {"type": "mock"}}), "invalid_request", field="prompt")
    assert_problem(api.post("/sessions", json={"template": "nobody"}), "template_not_found")


def test_a_task_does_what_its_template_says(api: httpx.Client) -> None:
    push(api, "ordering")
    made = api.post("/tasks", json={"template": "ordering", "inputs": {"who": "Ann"}})
    assert made.status_code == 201, made.text
    place = f"/tasks/{made.json()['id']}"
    wait_until(lambda: api.get(place).json()["status"] == "completed", "the task is completed")
    task = api.get(place).json()
    assert task["task"]["prompt"] == "mock: say Hello Ann"
    assert task["labels"]["template"].startswith("ordering@sha256:")


@pytest.mark.parametrize(
    "references",
    [
        {"template": {"slug": "chatting", "version": "stable"}},
        {"agent": {"slug": "chatting", "version": "stable"}},
        {"template": "chatting"},
    ],
)
def test_a_chat_names_a_revision_in_references(api: httpx.Client, references: dict[str, Any]) -> None:
    revision = push(api, "chatting", tags=["stable"])["revision"]
    messages = [{"role": "user", "parts": [{"type": "text", "text": "mock: recall"}]}]
    data = {"messages": messages, "inputs": {"who": "Ann", "colour": "red"}}
    answered = api.post("/messages", json={"references": references, "data": data})
    assert answered.status_code == 200, answered.text
    session = api.get(f"/sessions/{answered.json()['session_id']}").json()
    assert session["labels"]["template"] == f"chatting@{revision}"
    assert session["instructions"].startswith("Be kind to Ann.")
    sent = api.get(f"/sessions/{session['id']}/messages").text
    assert "colour" in sent
    data = {"messages": messages, "inputs": {"who": 1}}
    assert api.post("/messages", json={"references": references, "data": data}).status_code == 422


@pytest.mark.parametrize(
    "inputs",
    [{"note": "ghp_0123456789abcdefghij"}, {"api_key": "anything"}, {"deep": {"list": ["sk-0123456789abcdefghij"]}}],
)
def test_inputs_of_a_chat_carry_no_credentials(api: httpx.Client, inputs: dict[str, Any]) -> None:
    field = f"data.inputs.{next(iter(inputs))}"
    messages = [{"role": "user", "parts": [{"type": "text", "text": "mock: recall"}]}]
    chat = api.post("/messages", json={"data": {"messages": messages, "inputs": inputs}})
    assert (chat.status_code, field in chat.text) == (400, True), chat.text
    plain = {"messages": [{"role": "user", "content": "mock: recall"}], **inputs}
    assert field in api.post("/invoke", json={"data": {"inputs": plain}}).text


def test_a_plain_call_names_a_revision_in_references(api: httpx.Client) -> None:
    push(api, "plainly", tags=["stable"])
    data = {"inputs": {"messages": [{"role": "user", "content": "mock: instructions"}], "who": "Ann"}}
    for version in ("version", "revision", "tag"):
        body: dict[str, Any] = {"references": {"template": {"slug": "plainly", version: "stable"}}, "data": data}
        assert "Be kind to Ann." in api.post("/invoke", json=body).text
    body = {"references": {"template": {"slug": "plainly", "version": "beta"}}, "data": data}
    assert "revision_not_found" in api.post("/invoke", json=body).text


def test_a_version_is_never_passed_over(api: httpx.Client) -> None:
    first = push(api, "staying", tags=["stable"])["revision"]
    second = api.post("/templates", json={"files": files("staying", **{"AGENTS.md": "New."})}).json()["revision"]
    push(api, "leaving")
    data = {"messages": [{"role": "user", "parts": [{"type": "text", "text": "mock: say Hi"}]}], "inputs": {"who": "A"}}

    def status(session: str, references: dict[str, Any]) -> int:
        body = {"session_id": session, "references": references, "data": data}
        return api.post("/messages", json=body).status_code

    assert status("stays", {"template": {"slug": "staying", "version": "stable"}}) == 200
    for same in ("stable", "latest", first):
        assert status("stays", {"template": {"slug": "staying", "version": same}}) == 200, "it goes on as it began"
    assert status("stays", {"template": {"slug": "staying", "version": second}}) == 422
    assert status("stays", {"template": "leaving"}) == 422
    assert status("none", {"template": {"slug": "staying", "version": "stable", "tag": "latest"}}) == 400
    assert status("none", {"template": {"slug": "staying", "version": ""}}) == 400
    assert status("none", {"template": {"slug": "staying", "version": 0}}) == 400
    assert status("none", {"template": "staying", "agent": {"slug": "leaving", "version": "latest"}}) == 422
    assert api.get("/sessions/none").status_code == 404
