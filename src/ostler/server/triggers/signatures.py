"""Whether a delivery is from who knows the secret: each scheme signs the raw bytes in its own way.

All comparisons take the same time whatever was sent, and a time that is signed must be near to now on both sides.
"""

import base64
import hmac
from collections.abc import Callable, Iterable, Mapping

import msgspec

from ostler.base import signing
from ostler.wire.triggers import NewSignature, SignatureScheme

WINDOW_SECONDS = 300
_FEWEST = 8
_FEWEST_OF_A_TOKEN = 16
"""Of a secret that is sent itself, so that senders may be asked whether they have guessed it."""
_SENT_AS_IT_IS = frozenset({"token", "gitlab"})
Headers = Mapping[str, str]


class Sent(msgspec.Struct, frozen=True, kw_only=True):
    """A delivery as it came; names of headers are in lower case."""

    headers: Headers
    body: bytes
    now: float


def is_genuine(signature: NewSignature, sent: Sent) -> bool:
    """Whether one of the secrets has signed it."""
    found = [_SCHEMES[signature.scheme](signature, secret, sent) for secret in _secrets(signature)]
    return any(found)


def secret_faults(signature: NewSignature) -> dict[str, str]:
    """Why a secret that was given is none: it can be guessed, or senders could not sign with it."""
    given = {"signature.secret": signature.secret, "signature.earlierSecret": signature.earlier_secret}
    return {
        field: reason
        for field, secret in given.items()
        if secret is not None and (reason := _fault(signature.scheme, secret)) is not None
    }


def _fault(scheme: SignatureScheme, secret: str) -> str | None:
    if scheme == "standard" or (scheme == "gitlab" and secret.startswith(signing.PREFIX)):
        try:
            signing.key(secret)
        except ValueError as error:
            return f"{error}, as `openssl rand -base64 32` prints; leave it out and the server makes one"
        return None
    fewest = _FEWEST_OF_A_TOKEN if scheme in _SENT_AS_IT_IS else _FEWEST
    if len(secret) >= fewest:
        return None
    return f"must have at least {fewest} characters; leave it out and the server makes one"


def _secrets(signature: NewSignature) -> list[str]:
    return [secret for secret in (signature.secret, signature.earlier_secret) if secret]


def _same(given: str, wanted: str) -> bool:
    return hmac.compare_digest(given.encode("utf-8", "surrogateescape"), wanted.encode())


def _hex(secret: str, *signed: bytes) -> str:
    return hmac.digest(secret.encode(), b"".join(signed), "sha256").hex()


def _is_now(sent: Sent, stamp: str) -> bool:
    return stamp.isascii() and stamp.isdigit() and len(stamp) < 16 and abs(sent.now - int(stamp)) <= WINDOW_SECONDS


def _github(_: NewSignature, secret: str, sent: Sent) -> bool:
    return _same(sent.headers.get("x-hub-signature-256", ""), f"sha256={_hex(secret, sent.body)}")


def _gitea(_: NewSignature, secret: str, sent: Sent) -> bool:
    given = sent.headers.get("x-forgejo-signature") or sent.headers.get("x-gitea-signature", "")
    return _same(given, _hex(secret, sent.body))


def _gitlab(signature: NewSignature, secret: str, sent: Sent) -> bool:
    if secret.startswith(signing.PREFIX):
        return _standard(signature, secret, sent)
    return _same(sent.headers.get("x-gitlab-token", ""), secret)


def _slack(_: NewSignature, secret: str, sent: Sent) -> bool:
    stamp = sent.headers.get("x-slack-request-timestamp", "")
    wanted = f"v0={_hex(secret, b'v0:', stamp.encode(), b':', sent.body)}"
    return _same(sent.headers.get("x-slack-signature", ""), wanted) and _is_now(sent, stamp)


def _stripe(_: NewSignature, secret: str, sent: Sent) -> bool:
    pairs = [part.strip().partition("=") for part in sent.headers.get("stripe-signature", "").split(",")]
    stamp = next((value for name, _, value in pairs if name == "t"), "")
    wanted = _hex(secret, stamp.encode(), b".", sent.body)
    return _any(wanted, (value for name, _, value in pairs if name == "v1")) and _is_now(sent, stamp)


def _standard(_: NewSignature, secret: str, sent: Sent) -> bool:
    name, stamp = sent.headers.get("webhook-id", ""), sent.headers.get("webhook-timestamp", "")
    try:
        key = base64.b64decode(secret.removeprefix(signing.PREFIX), validate=True)
    except ValueError:  # also for letters that base64 does not have
        return False
    mac = hmac.digest(key, f"{name}.{stamp}.".encode("utf-8", "surrogateescape") + sent.body, "sha256")
    wanted = f"v1,{base64.b64encode(mac).decode()}"
    return _any(wanted, sent.headers.get("webhook-signature", "").split(" ")) and bool(name) and _is_now(sent, stamp)


def _token(signature: NewSignature, secret: str, sent: Sent) -> bool:
    if signature.header is not None:
        return _same(sent.headers.get(signature.header.lower(), ""), secret)
    scheme, _, given = sent.headers.get("authorization", "").partition(" ")
    return _same(given.strip(), secret) and scheme.lower() == "bearer"


def _any(wanted: str, given: Iterable[str]) -> bool:
    return any([_same(each, wanted) for each in given])  # noqa: C419  none is left out, so it takes as long


_SCHEMES: dict[str, Callable[[NewSignature, str, Sent], bool]] = {
    "github": _github,
    "gitea": _gitea,
    "gitlab": _gitlab,
    "slack": _slack,
    "stripe": _stripe,
    "standard": _standard,
    "token": _token,
}
_ID_HEADERS = {
    "github": ("x-github-delivery",),
    "gitea": ("x-gitea-delivery", "x-forgejo-delivery"),
    "gitlab": ("webhook-id", "idempotency-key", "x-gitlab-event-uuid"),
    "standard": ("webhook-id",),
    "token": ("idempotency-key", "webhook-id"),
}
_SECRET_WORDS = ("signature", "token", "secret", "password", "authorization", "x-auth", "api-key", "apikey")
_ID_FIELDS = {"slack": "event_id", "stripe": "id"}


def name_of(signature: NewSignature, sent: Sent, event: object) -> str | None:
    """What its sender calls a delivery, the same when it is sent again; None if the scheme has no name for it."""
    for header in _ID_HEADERS.get(signature.scheme, ()):
        if name := sent.headers.get(header):
            return name[:200]
    field = _ID_FIELDS.get(signature.scheme)
    found = event.get(field) if field is not None and isinstance(event, dict) else None
    return found[:200] if isinstance(found, str) and found else None


def is_secret_header(signature: NewSignature, name: str) -> bool:
    """Whether a header proves something, so that it is not stored."""
    return any(word in name for word in _SECRET_WORDS) or name in {"cookie", (signature.header or "").lower()}
