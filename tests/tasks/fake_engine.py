"""Stands in for a container engine: takes the same command lines, writes them down, and runs the command right here.

Only what is mounted counts as there, and only variables that are named or in the file are passed on, as in a real
container.
"""

import json
import os
import sys
from pathlib import Path

_WITH_VALUE = {"--name", "--label", "--user", "--cpus", "--memory", "--mount", "--workdir", "--env", "--env-file"}


def _run(words: list[str]) -> None:
    mounts: dict[str, str] = {}
    variables = {"PATH": os.environ["PATH"]}
    folder = "/"
    while words and words[0].startswith("--"):
        flag = words.pop(0)
        value = words.pop(0) if flag in _WITH_VALUE else ""
        if flag == "--mount":
            fields = dict(field.partition("=")[::2] for field in value.split(","))
            mounts[fields["target"]] = fields["source"]
        elif flag == "--env":
            variables[value] = os.environ[value]
        elif flag == "--env-file":
            variables |= dict(line.partition("=")[::2] for line in Path(value).read_text().splitlines())
        elif flag == "--workdir":
            folder = value
    os.chdir(mounts[folder])
    variables["FOLDER_INSIDE"] = folder
    _, *command = words
    os.execvpe(command[0], command, variables)


def main() -> None:
    """One command of the engine."""
    for name, told in (("engine.log", sys.argv[1:]), ("engine.env", dict(os.environ))):
        with Path(__file__).with_name(name).open("a") as file:
            file.write(json.dumps(told) + "\n")
    match sys.argv[1:]:
        case ["run", *words]:
            _run(words)
        case ["image", "inspect", *_]:
            sys.exit(1)


main()
