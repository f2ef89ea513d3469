"""Where an execution stands: one rule for its row, its state and its stream."""

from ostler.server.dialects.workflow.bodies import ExecutionStatus
from ostler.wire.events import SessionStatus


def execution_status(status: SessionStatus, *, has_begun: bool, works: bool, asks: bool) -> ExecutionStatus:
    """The status of an execution; `works` says that a turn is under way, `asks` that it waits for an answer."""
    match status:
        case "completed":
            return "COMPLETED"
        case "failed":
            return "FAILED"
        case "cancelled" | "stopped" | "stopping":
            return "CANCELLED"
        case "queued" | "provisioning":
            return "PENDING"
        case _ if not has_begun:
            return "PENDING"
        case _:
            return "RUNNING" if works and not asks else "WAITING"


def state_word(status: ExecutionStatus) -> str:
    """The same as the `status` of an execution's state."""
    return "waiting_for_input" if status == "WAITING" else status.lower()
