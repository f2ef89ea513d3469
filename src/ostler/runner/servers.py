"""The servers that a runner dials: those it was given, and those that one of them named."""

from collections.abc import Iterable
from contextlib import suppress

from ostler.base.errors import SettingsError
from ostler.runner.registration import checked_servers


class Servers:
    """Tried in turn, one after the other."""

    def __init__(self, given: tuple[str, ...], named: tuple[str, ...], *, insecure: bool) -> None:
        """`insecure` allows addresses that others can read along with, also named ones."""
        self._given = given
        self._insecure = insecure
        self._all = given
        self._at = 0
        self.learn(named)

    def __len__(self) -> int:
        return len(self._all)

    def next(self) -> str:
        """The one to try now."""
        server = self._all[self._at % len(self._all)]
        self._at += 1
        return server

    def learn(self, named: Iterable[str]) -> None:
        """Know these besides those that were given, and no others."""
        usable: list[str] = []
        for each in named:
            with suppress(SettingsError):  # whoever named it may reach it otherwise than we
                usable += checked_servers((each,), insecure=self._insecure)
        self._all = tuple(dict.fromkeys((*self._given, *usable)))

    def is_given(self, server: str) -> bool:
        """Whether the operator named it here."""
        return server in self._given
