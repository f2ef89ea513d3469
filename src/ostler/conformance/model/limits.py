"""What the services of subscriptions answer when a limit of the account is reached."""

from ostler.conformance.model.conversation import Json


def limited(ends: int) -> tuple[Json, dict[str, str]]:
    """Body and headers of the refusal, for the agents of both services; `ends` is in seconds since 1970."""
    message = "The usage limit has been reached"
    details = {"plan_type": "plus", "resets_at": ends}
    body = {"type": "error", "error": {"type": "usage_limit_reached", "message": message, **details}}
    anthropic = {"status": "rejected", "reset": str(ends), "representative-claim": "five_hour"}
    codex = {"used-percent": "100", "window-minutes": "300", "reset-at": str(ends)}
    headers = {f"anthropic-ratelimit-unified-{name}": value for name, value in anthropic.items()}
    return body, headers | {f"x-codex-primary-{name}": value for name, value in codex.items()}
