"""What the checker of a cluster sees; the cluster itself is harmed by `make chaos ARGS=cluster`."""

import pytest

from tests.chaos.cluster.checker import Seen, one_at_a_time

ONE = Seen(1, 4, 7, "srv_a", "10.77.0.11")


@pytest.mark.parametrize(
    ("later", "problem"),
    [
        (ONE._replace(first=5, last=5), []),
        (Seen(5, 5, 8, "srv_b", "10.77.0.12"), []),
        (ONE._replace(first=5, last=5, epoch=6), ["I9: 5 was written in epoch 6, behind one of epoch 7"]),
        (ONE._replace(first=5, last=5, epoch=None), ["I9: 5 to 5 was written while nobody had the session"]),
        (
            Seen(5, 5, 7, "srv_a", "10.77.0.12"),
            ["I9: in epoch 7 both ('srv_a', '10.77.0.11') and ('srv_a', '10.77.0.12') wrote"],
        ),
    ],
)
def test_the_checker_sees_who_writes_out_of_turn(later: Seen, problem: list[str]) -> None:
    assert one_at_a_time([ONE, later]) == problem
