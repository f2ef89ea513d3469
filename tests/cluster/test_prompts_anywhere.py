"""Saved prompts are the same on every server of a cluster."""

import httpx


def test_what_is_saved_on_one_server_is_used_and_changed_on_the_other(a: httpx.Client, b: httpx.Client) -> None:
    assert a.post("/prompts", json={"name": "shared", "text": "Make tea."}).status_code == 201
    assert b.post("/prompts", json={"name": "shared", "text": "Again."}).status_code == 409
    changed = b.patch("/prompts/shared", json={"text": "Make $ARGUMENTS."})
    assert changed.status_code == 200, changed.text
    assert a.get("/prompts/shared").json()["text"] == "Make $ARGUMENTS."
    assert b.delete("/prompts/shared").status_code == 204
    assert a.get("/prompts").json() == {"items": []}
