"""What Claude Code tells about the session itself: calls that are made again, limits, summaries, names."""

from collections.abc import Iterable, Sequence

from ostler.agents import say
from ostler.agents.adapter import Offered, Output
from ostler.agents.claude_code import frames
from ostler.wire.agents import Command
from ostler.wire.events import SessionInfoData
from ostler.wire.running import Draft


def retry(_: object, frame: frames.ApiRetry) -> Sequence[Output]:
    """A model call failed and is made again."""
    cause = " ".join(str(part) for part in (frame.error_status, frame.error) if part)
    message = (
        f"The model call failed ({cause or 'no answer'}); trying again in {frame.retry_delay_ms / 1000:.1f} s "
        f"({frame.attempt} of {frame.max_retries})."
    )
    return (say.notice(message, "retry"),)


def compaction(_: object, frame: frames.CompactBoundary) -> Sequence[Output]:
    """The conversation so far was replaced by a summary."""
    tokens = frame.compact_metadata.pre_tokens
    size = "" if tokens is None else f" ({tokens} tokens)"
    message = f"The conversation so far{size} was replaced by a summary."
    return (say.notice(message, "compaction", "info"),)


def remark(_: object, frame: frames.Remark) -> Sequence[Output]:
    """Claude Code itself has something to say; hints of the lowest level are for terminals."""
    if frame.level == "info" or not frame.content:
        return ()
    return (say.notice(frame.content, "agent", "warning" if frame.level == "warning" else "info"),)


def title(_: object, frame: frames.TitleChanged) -> Sequence[Output]:
    """The session has a name."""
    return (Draft("session.info", SessionInfoData(title=frame.title)),)


def rate_limit(info: frames.RateLimitInfo) -> Sequence[Output]:
    """A limit of the account is near or reached."""
    if info.status == "allowed":
        return ()
    state = "reached" if info.status == "rejected" else "near"
    message = f"The account's rate limit ({info.rate_limit_type or 'unknown'}) is {state}."
    return (say.notice(message, "rate_limit"),)


def offer(commands: Iterable[frames.CommandInfo]) -> Offered:
    """The slash commands that a prompt may begin with."""
    known = (Command(name=one.name, description=_text(one.description), hint=_text(one.hint)) for one in commands)
    return Offered(commands=tuple(known))


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""
