"""The `ostler` command; importing it costs no more than its help needs."""

import sys
from collections.abc import Sequence
from typing import NoReturn

from ostler.cli.root import root, run

__all__ = ["main", "root"]


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """The entry point: run one command and leave with its exit code."""
    sys.exit(run(list(sys.argv[1:] if arguments is None else arguments)))
