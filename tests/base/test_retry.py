"""What failed is tried again after growing pauses of chance, and not for ever."""

from collections.abc import Iterator
from itertools import islice

from ostler.base.retry import delays


def _always() -> float:
    return 1.0


def test_a_pause_doubles_up_to_the_longest() -> None:
    assert list(islice(delays(0.5, 3, chance=_always), 5)) == [0.5, 1, 2, 3, 3]


def test_a_pause_is_anything_up_to_its_bound() -> None:
    parts: Iterator[float] = iter([0.0, 0.25, 0.75])
    assert list(islice(delays(1, 60, chance=lambda: next(parts)), 3)) == [0, 0.5, 3]


def test_those_who_failed_together_do_not_come_back_together() -> None:
    alike = [tuple(islice(delays(1, 60), 4)) for _ in range(20)]
    assert len(set(alike)) == 20
    assert all(0 <= pause < bound for pauses in alike for pause, bound in zip(pauses, (1, 2, 4, 8), strict=True))


def test_after_the_last_try_there_is_no_pause() -> None:
    assert len(list(delays(1, 60, tries=4))) == 3
    assert list(delays(1, 60, tries=1)) == []


def test_the_time_begins_with_the_first_failure() -> None:
    now = 100.0
    pauses = delays(1, 60, within=10, chance=_always, monotonic=lambda: now)
    now = 200.0
    assert next(pauses) == 1
    now = 209.9
    assert next(pauses) == 2
    now = 210.0
    assert list(pauses) == []


def test_no_time_is_no_second_try() -> None:
    assert list(delays(1, 60, within=0)) == []


def test_years_of_failures_are_no_problem() -> None:
    assert next(islice(delays(0.1, 2, chance=_always), 10_000, None)) == 2
