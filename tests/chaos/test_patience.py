"""Bounds of the tests follow the machine they run on."""

import os

import pytest

from tests.support import patience


@pytest.fixture(autouse=True)
def _quiet_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(patience, "_slowest", patience.NOMINAL_START_SECONDS)
    monkeypatch.setattr(os, "getloadavg", lambda: (0.1, 0.1, 0.1))


def test_an_idle_machine_gets_the_bound_as_it_is() -> None:
    assert patience.stretched(30) == 30


def test_a_bound_grows_with_what_a_start_takes_here() -> None:
    patience.note_start(4 * patience.NOMINAL_START_SECONDS)
    patience.note_start(0.1)
    assert patience.stretched(30) == 120


def test_a_bound_grows_with_the_crowd_and_has_an_end(monkeypatch: pytest.MonkeyPatch) -> None:
    cores = len(os.sched_getaffinity(0))
    monkeypatch.setattr(os, "getloadavg", lambda: (8.0 * cores, 0.0, 0.0))
    assert patience.stretched(30) == 240
    monkeypatch.setattr(os, "getloadavg", lambda: (1e6, 0.0, 0.0))
    assert patience.stretched(30) == 30 * patience.MOST
