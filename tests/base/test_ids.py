"""Ids are made in order, and never twice, whatever the clock does."""

from ostler.base.ids import _Ulids

AHEAD = "7ZZZZZZZZZ0000000000000000"
"""An id of somebody whose clock is centuries ahead."""


def test_ids_sort_in_the_order_they_were_made() -> None:
    ulids = _Ulids()
    made = [ulids.next() for _ in range(5000)]
    assert made == sorted(set(made))


def test_who_follows_an_id_of_the_future_makes_ids_behind_it_that_nobody_else_makes() -> None:
    servers = [_Ulids(), _Ulids()]
    for server in servers:
        server.follow(AHEAD)
    one, other = ([server.next() for _ in range(5000)] for server in servers)
    for made in (one, other):
        assert [AHEAD, *made] == sorted({AHEAD, *made})
        assert {len(ulid) for ulid in made} == {26}
    assert not set(one) & set(other)
