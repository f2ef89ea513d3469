"""Signatures of webhooks, as Standard Webhooks has them: HMAC-SHA256 over id, time and body."""

import base64
import hmac
import secrets

PREFIX = "whsec_"
_SHORTEST = 24
_LONGEST = 64
_NEW = 32
"""Bytes of a secret, as the standard has them."""


def key(secret: str | None) -> bytes | None:
    """The bytes of a secret such as whsec_MfKQ...; raises ValueError for one that is none."""
    if secret is None:
        return None
    try:
        found = base64.b64decode(secret.removeprefix(PREFIX), validate=True)
    except ValueError as error:  # also for letters that base64 does not have
        raise ValueError("must be whsec_ and base64") from error
    if not secret.startswith(PREFIX) or not _SHORTEST <= len(found) <= _LONGEST:
        raise ValueError(f"must be whsec_ and the base64 of {_SHORTEST} to {_LONGEST} bytes")
    return found


def new_secret() -> str:
    """One that nobody knows yet."""
    return PREFIX + base64.b64encode(secrets.token_bytes(_NEW)).decode()


def headers(secret: bytes | None, name: str, at: int, body: bytes) -> dict[str, str]:
    """By which a receiver knows that a call is ours, new, and as it was sent; not signed without a secret."""
    unsigned = {"webhook-id": name, "webhook-timestamp": str(at)}
    if secret is None:
        return unsigned
    signature = hmac.digest(secret, f"{name}.{at}.".encode() + body, "sha256")
    return {**unsigned, "webhook-signature": f"v1,{base64.b64encode(signature).decode()}"}
