"""Stands in for a container engine: takes the same command lines, writes them down, and runs the command right here.

Only what is mounted counts as there, and only variables that are named are passed on, as in a real container.
"""

import json
import os
import sys
from pathlib import Path

_WITH_VALUE = {"--name", "--label", "--user", "--cpus", "--memory", "--volume", "--workdir", "--env"}


def _run(words: list[str]) -> None:
    mounts: dict[str, str] = {}
    names = {"PATH"}
    folder = "/"
    while words and words[0].startswith("--"):
        flag = words.pop(0)
        value = words.pop(0) if flag in _WITH_VALUE else ""
        if flag == "--volume":
            source, target = value.split(":")[:2]
            mounts[target] = source
        elif flag == "--env":
            names.add(value)
        elif flag == "--workdir":
            folder = value
    os.chdir(mounts[folder])
    _, *command = words
    os.execvpe(command[0], command, {name: os.environ[name] for name in names if name in os.environ})


def main() -> None:
    """One command of the engine."""
    log = Path(__file__).with_name("engine.log")
    with log.open("a") as file:
        file.write(json.dumps(sys.argv[1:]) + "\n")
    match sys.argv[1:]:
        case ["run", *words]:
            _run(words)
        case ["image", "inspect", *_]:
            sys.exit(1)


main()
