"""Search as tests use it: they wait until everything that was said can be found."""

from typing import Any

import httpx

from tests.support.patience import wait_until


def find(api: httpx.Client, text: str, **params: str | int) -> list[dict[str, Any]]:
    """What is found when everything is in the index."""
    answers: list[dict[str, Any]] = []

    def complete() -> bool:
        answer = api.get("/search", params={"q": text, **params})
        assert answer.status_code == 200, answer.text
        answers.append(answer.json())
        return bool(answers[-1]["isComplete"])

    wait_until(complete, what="a complete index")
    items: list[dict[str, Any]] = answers[-1]["items"]
    return items
