"""How much of a conversation is taken over."""

from ostler.base.errors import Unprocessable

MOST_LISTED = 200
"""Of each agent, the newest."""
MOST_BYTES = 256 * 2**20


def refuse_above(most: int, conversation_id: str, size: int) -> None:
    """Raises if a conversation is too large."""
    if size > most:
        reason = f"it has {size} bytes, and only up to {most} can be taken over"
        raise Unprocessable(
            reason=f"conversationId '{conversation_id}': {reason}.", errors={"conversationId": [reason]}
        )
