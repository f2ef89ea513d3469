"""What Temporal keeps and replays: one workflow for each job, whose history holds keys and numbers only.

Histories outlive releases: `tests/engine/histories/` has some that were written by earlier code, and each must replay.
A change that orders other steps stands behind `workflow.patched`.
"""

from dataclasses import dataclass
from datetime import timedelta

from temporalio import workflow
from temporalio.common import RetryPolicy
from temporalio.exceptions import ActivityError

PERFORM, GIVE_UP, AGAIN = "perform", "give_up", "again"
_SLACK = timedelta(seconds=15)
"""A server ends a try by itself; this is for one that is gone."""


@dataclass(frozen=True)
class JobOrder:
    """Which job, and how often it is tried."""

    key: str
    first: float
    longest: float
    within: float
    seconds: float


@workflow.defn(name="Job")
class JobWorkflow:
    """Does a job when it is due, again while that fails, and again if the same key is asked for meanwhile."""

    def __init__(self) -> None:
        self._asked = 0

    @workflow.signal(name=AGAIN)
    def again(self) -> None:
        """The job is in the store: do not wait for one that was there before."""
        self._asked += 1

    @workflow.run
    async def run(self, order: JobOrder) -> None:
        """Ends when there is nothing to do under this key."""
        while True:
            asked = self._asked
            wait = await self._performed(order)
            if wait > 0:
                await self._asked_or_waited(asked, wait)
            elif asked == self._asked:
                return

    async def _asked_or_waited(self, asked: int, seconds: float) -> None:
        try:
            await workflow.wait_condition(lambda: asked != self._asked, timeout=timedelta(seconds=seconds))
        except TimeoutError:
            return

    async def _performed(self, order: JobOrder) -> float:
        """The seconds until it is due; 0 if it is done."""
        try:
            return await workflow.execute_activity(
                PERFORM,
                order.key,
                result_type=float,
                start_to_close_timeout=timedelta(seconds=order.seconds) + _SLACK,
                schedule_to_close_timeout=timedelta(seconds=order.within) + _SLACK,
                retry_policy=RetryPolicy(
                    initial_interval=timedelta(seconds=order.first),
                    backoff_coefficient=2.0,
                    maximum_interval=timedelta(seconds=order.longest),
                ),
            )
        except ActivityError:
            await workflow.execute_activity(GIVE_UP, order.key, start_to_close_timeout=timedelta(seconds=60))
            return 0.0
