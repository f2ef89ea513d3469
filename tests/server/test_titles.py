"""A session that nobody named is called by the first sentence of what was asked."""

import pytest

from ostler.server.sessions.log.titles import fork_title, title_of


@pytest.mark.parametrize(
    ("prompt", "title"),
    [
        ("Fix the flaky test.", "Fix the flaky test"),
        ("Fix the flaky test. It fails every second time.\nLook at the log.", "Fix the flaky test"),
        ("please add a discount to the order", "Add a discount to the order"),
        ("Hi, could you please look at v1.2.3 of main.py? It is slow.", "Look at v1.2.3 of main.py"),
        ("# Plan\n\n- first\n- second", "Plan"),
        ("```python\nprint(1)\n```\nWhy does this print 1?", "Why does this print 1"),
        ("```\nonly code\n```", "only code"),
        ("Hello", "Hello"),
        ("please", "please"),
        ("mock: say hi", "mock: say hi"),
        ("iPhone layout is broken", "iPhone layout is broken"),
        ("Wait... what?", "Wait... what"),
        ("  \n ", None),
        ("", None),
        ("x" * 100, "x" * 71 + "…"),
    ],
)
def test_the_first_sentence_is_the_title(prompt: str, title: str | None) -> None:
    assert title_of(prompt) == title


def test_a_long_one_is_cut_between_words() -> None:
    found = title_of("Find out " + "why the build takes so long on the small machine " * 3)
    assert found == "Find out why the build takes so long on the small machine why the build…"


def test_forks_differ_from_their_parents() -> None:
    first = fork_title("Tea")
    assert (first, fork_title(first), fork_title(fork_title(first))) == (
        "Fork of Tea",
        "Fork 2 of Tea",
        "Fork 3 of Tea",
    )
