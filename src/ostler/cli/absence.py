"""Tells whoever waits for a server that it is away, and that it is back."""

import sys

import click

from ostler.client.errors import ClientError

_ERASE = "\r\x1b[K"
_SHOWN_AT = 2
"""The failure in a row that is told: a server that only starts again is there at the next look, most often."""


class Absence:
    """Takes what becomes of a stream, and says on standard error what a person should know."""

    def __init__(self) -> None:
        self._failures = 0

    def __call__(self, error: ClientError | None) -> None:
        if error is not None:
            self._failures += 1
            if self._failures == _SHOWN_AT:
                _say(f"{error} It is tried again until it answers; Ctrl-C leaves.")
            return
        if self._failures >= _SHOWN_AT:
            _say("The server answers again.")
        self._failures = 0


def _say(sentence: str) -> None:
    click.echo(f"{_ERASE if sys.stderr.isatty() else ''}{sentence}", err=True)
