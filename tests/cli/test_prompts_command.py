"""`ostler prompts`, and `ostler run` with one of them."""

import json

from tests.cli.conftest import Ostler


def test_prompts_are_saved_listed_changed_and_removed(ostler: Ostler) -> None:
    saved = ostler(
        "prompts", "save", "tea", "-", "--description", "How to make tea", stdin="mock: say Boil $ARGUMENTS\n"
    )
    assert saved.stdout == "Saved. Use it with `ostler run --prompt tea`, or write /tea in the web UI.\n"
    assert ostler("prompts", "list").stdout.splitlines()[-1].split(maxsplit=1) == ["tea", "How to make tea"]
    assert ostler("prompts", "show", "tea").stdout == "mock: say Boil $ARGUMENTS\n\n"
    edited = json.loads(ostler("prompts", "edit", "tea", "--name", "green-tea", "--json").stdout)
    assert (edited["name"], edited["description"]) == ("green-tea", "How to make tea")
    assert ostler("prompts", "remove", "green-tea").stdout == "Removed the prompt 'green-tea'.\n"
    missing = ostler("prompts", "show", "tea")
    assert missing.returncode != 0
    assert "There is no saved prompt 'tea'. List them with `ostler prompts list`." in missing.stderr
    assert "Say what is to change" in ostler("prompts", "edit", "tea").stderr


def test_a_saved_prompt_is_run_with_what_it_is_given(ostler: Ostler) -> None:
    ostler("prompts", "save", "boil", "mock: say Boil $ARGUMENTS, then drink $ARGUMENTS.")
    assert "Boil water, then drink water." in ostler("run", "mock", "water", "--prompt", "boil").stdout
    assert "Boil , then drink ." in ostler("run", "mock", "--prompt", "boil").stdout
    assert "There is no saved prompt 'bake'" in ostler("run", "mock", "--prompt", "bake").stderr
    assert "Missing argument '[AGENT] PROMPT'" in ostler("run").stderr
