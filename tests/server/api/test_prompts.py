"""Prompts that people saved to use them again."""

from typing import Any

import httpx
import pytest

from ostler.wire.prompts import LONGEST_TEXT, MOST_PROMPTS
from tests.support.http_helpers import assert_problem


def save(api: httpx.Client, name: str, text: str = "Review $ARGUMENTS.", **more: str) -> dict[str, Any]:
    answered = api.post("/prompts", json={"name": name, "text": text, **more})
    assert answered.status_code == 201, answered.text
    assert answered.headers["location"] == f"/api/v1/prompts/{name}"
    found: dict[str, Any] = answered.json()
    return found


def test_a_prompt_is_saved_found_changed_and_removed(api: httpx.Client) -> None:
    saved = save(api, "saved.one", description=" Looks\nat \x00 files ")
    assert (saved["text"], saved["description"]) == ("Review $ARGUMENTS.", "Looks at files")
    assert api.get("/prompts/saved.one").json() == saved
    assert saved in api.get("/prompts").json()["items"]
    edited = api.patch("/prompts/saved.one", json={"name": "saved.two", "description": ""}).json()
    assert edited == {
        "name": "saved.two",
        "text": saved["text"],
        "createdAt": saved["createdAt"],
        "updatedAt": edited["updatedAt"],
    }
    assert api.patch("/prompts/saved.two", json={"text": "Look."}).json()["text"] == "Look."
    assert_problem(api.get("/prompts/saved.one"), "prompt_not_found")
    assert api.delete("/prompts/saved.two").status_code == 204
    assert_problem(api.delete("/prompts/saved.two"), "prompt_not_found")
    assert_problem(api.patch("/prompts/saved.two", json={"text": "x"}), "prompt_not_found")


def test_a_name_is_used_once(api: httpx.Client) -> None:
    save(api, "twice")
    save(api, "another")
    problem = assert_problem(api.post("/prompts", json={"name": "twice", "text": "x"}), "prompt_exists")
    assert "Choose another name, or edit that one." in problem["detail"]
    assert_problem(api.patch("/prompts/another", json={"name": "twice"}), "prompt_exists")
    assert api.patch("/prompts/twice", json={"name": "twice", "text": "y"}).json()["text"] == "y"


@pytest.mark.parametrize("name", ["", "Review", "two words", "a/b", "-a", "x" * 65, "ä", "a\n"])
def test_a_name_is_one_that_can_be_written_after_a_slash(api: httpx.Client, name: str) -> None:
    assert_problem(api.post("/prompts", json={"name": name, "text": "x"}), "invalid_request", field="name")


@pytest.mark.parametrize(
    ("field", "value"),
    [("text", " \n"), ("text", "x" * (LONGEST_TEXT + 1)), ("description", "x" * 201)],
)
def test_what_is_empty_or_too_long_is_refused(api: httpx.Client, field: str, value: str) -> None:
    body = {"name": "fine", "text": "x", field: value}
    assert_problem(api.post("/prompts", json=body), "invalid_request", field=field)
    assert_problem(api.patch("/prompts/fine", json={field: value}), "invalid_request", field=field)


def test_there_are_no_more_than_the_most(api: httpx.Client) -> None:
    known = len(api.get("/prompts").json()["items"])
    for number in range(MOST_PROMPTS - known):
        save(api, f"many-{number}", "x" * LONGEST_TEXT)
    problem = assert_problem(api.post("/prompts", json={"name": "more", "text": "x"}), "too_many_prompts")
    assert "Remove one that nobody uses." in problem["detail"]
    for number in range(MOST_PROMPTS - known):
        assert api.delete(f"/prompts/many-{number}").status_code == 204
