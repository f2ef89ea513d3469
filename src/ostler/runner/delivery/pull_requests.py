"""Pull requests as forges tell of them, in our own words; what a forge leaves out is not known."""

from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from ostler.base.errors import DeliveryFailed
from ostler.base.errors.delivery import MergeRefused
from ostler.wire.workspace_events import PullRequestData
from ostler.wire.workspaces import CheckStatus, PullRequestStatus

T = TypeVar("T")
_RUNS: dict[str, CheckStatus] = {
    "success": "passing",
    "neutral": "passing",
    "skipped": "passing",
    "failure": "failing",
    "timed_out": "failing",
    "cancelled": "failing",
    "action_required": "failing",
    "startup_failure": "failing",
}
_STATUSES: dict[str, CheckStatus] = {
    "success": "passing",
    "pending": "pending",
    "failure": "failing",
    "error": "failing",
}
_PIPELINES: dict[str, CheckStatus] = {
    "success": "passing",
    "skipped": "passing",
    "failed": "failing",
    "canceled": "failing",
    "manual": "passing",
}
_WORSE: tuple[CheckStatus, ...] = ("failing", "pending", "passing")


def together(checks: Iterable[CheckStatus]) -> CheckStatus | None:
    """The worst of them; None if there are none."""
    found = set(checks)
    return next((status for status in _WORSE if status in found), None)


def check_runs(answer: Any) -> list[CheckStatus]:
    """What GitHub's check runs say, one by one."""
    runs = answer.get("check_runs", ()) if isinstance(answer, dict) else ()
    return [_RUNS.get(str(run.get("conclusion")), "pending") for run in runs if isinstance(run, dict)]


def statuses(answer: Any) -> list[CheckStatus]:
    """What the statuses of a commit say together; a commit without any is pending for ever, which says nothing."""
    if not isinstance(answer, dict) or not (answer.get("total_count") or answer.get("statuses")):
        return []
    return [_STATUSES.get(str(answer.get("state")), "pending")]


def head_commit(answer: Any) -> str:
    """The last commit of a pull request of GitHub or Gitea."""
    return _complete(lambda: str(answer["head"]["sha"]))


def github_like(answer: Any, checks: CheckStatus | None) -> PullRequestData:
    """A pull request of GitHub or Gitea."""
    return _complete(
        lambda: PullRequestData(
            number=int(answer["number"]),
            url=str(answer["html_url"]),
            branch=str(answer["head"]["ref"]),
            target=str(answer["base"]["ref"]),
            state=_state(answer["state"], is_merged=bool(answer.get("merged")), is_draft=bool(answer.get("draft"))),
            checks=checks,
            mergeable=answer.get("mergeable"),
        )
    )


def gitlab_view(answer: Any) -> PullRequestData:
    """A merge request of GitLab."""
    return _complete(
        lambda: PullRequestData(
            number=int(answer["iid"]),
            url=str(answer["web_url"]),
            branch=str(answer["source_branch"]),
            target=str(answer["target_branch"]),
            state=_state(answer["state"], is_merged=answer["state"] == "merged", is_draft=bool(answer.get("draft"))),
            checks=_pipeline(answer.get("head_pipeline")),
            mergeable=answer["detailed_merge_status"] == "mergeable" if "detailed_merge_status" in answer else None,
        )
    )


def refuse_unless_merged(status: int, answer: Any) -> None:
    """Raise with what the forge said about it."""
    if status == 200:
        return
    words = answer.get("message") if isinstance(answer, dict) else None
    raise MergeRefused(reason=f"the forge answers {status}: {str(words or answer)[:300]}. See to it there.")


def _state(state: str, *, is_merged: bool, is_draft: bool) -> PullRequestStatus:
    if is_merged:
        return "merged"
    if state not in {"open", "opened"}:
        return "closed"
    return "draft" if is_draft else "open"


def _pipeline(answer: Any) -> CheckStatus | None:
    return _PIPELINES.get(str(answer.get("status")), "pending") if isinstance(answer, dict) else None


def _complete(read: Callable[[], T]) -> T:
    try:
        return read()
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise DeliveryFailed(what="pull request", reason=f"the forge's answer lacks something ({error}).") from error
