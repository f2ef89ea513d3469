"""Messages to browsers: sealed for one of them (RFC 8291), and signed for its push service (RFC 8292)."""

import base64
import binascii
import os
from urllib.parse import urlsplit

import jwt
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from ostler.wire.webhooks import PushKeys

_CURVE = ec.SECP256R1()
_RECORD_BYTES = 4096
_LONGEST = 3000
"""Of a message; push services take 4096 bytes with all that is around it."""
_POINT_BYTES, _AUTH_BYTES = 65, 16
_TOKEN_SECONDS = 12 * 3600
_STORED_SECONDS = 24 * 3600
"""So long a push service holds a message for a browser that is away."""
_CONTACT = "mailto:ostler@example.org"


def new_key() -> str:
    """The private key that the messages of one subscription are signed with."""
    return _text(ec.generate_private_key(_CURVE).private_numbers().private_value.to_bytes(32, "big"))


def public_key(key: str) -> str:
    """What a browser subscribes with, its `applicationServerKey`."""
    return _text(_point(_private(key).public_key()))


def check(keys: PushKeys) -> None:
    """Raise ValueError with what is wrong with a browser's keys."""
    _recipient(keys)


def headers(key: str, endpoint: str, at: int) -> dict[str, str]:
    """How a push service knows who sends, and how the body is sealed."""
    address = urlsplit(endpoint)
    claims = {"aud": f"{address.scheme}://{address.netloc}", "exp": at + _TOKEN_SECONDS, "sub": _CONTACT}
    token = jwt.encode(claims, _private(key), algorithm="ES256")
    return {
        "authorization": f"vapid t={token}, k={public_key(key)}",
        "content-encoding": "aes128gcm",
        "content-type": "application/octet-stream",
        "ttl": str(_STORED_SECONDS),
        "urgency": "high",
    }


def sealed(keys: PushKeys, message: bytes) -> bytes:
    """A message that only the browser can read."""
    theirs, auth = _recipient(keys)
    ours = ec.generate_private_key(_CURVE)
    salt = os.urandom(16)
    shared = ours.exchange(ec.ECDH(), theirs)
    about = b"WebPush: info\0" + _point(theirs) + _point(ours.public_key())
    secret = _derived(auth, shared, about, 32)
    key = _derived(salt, secret, b"Content-Encoding: aes128gcm\0", 16)
    nonce = _derived(salt, secret, b"Content-Encoding: nonce\0", 12)
    text = AESGCM(key).encrypt(nonce, message[:_LONGEST] + b"\2", None)
    return salt + _RECORD_BYTES.to_bytes(4, "big") + bytes([_POINT_BYTES]) + _point(ours.public_key()) + text


def _recipient(keys: PushKeys) -> tuple[ec.EllipticCurvePublicKey, bytes]:
    try:
        point, auth = _bytes(keys.p256dh), _bytes(keys.auth)
        if len(auth) != _AUTH_BYTES:
            raise ValueError("auth must be 16 bytes in base64url")
        return ec.EllipticCurvePublicKey.from_encoded_point(_CURVE, point), auth
    except binascii.Error as error:
        raise ValueError("p256dh and auth must be base64url") from error


def _private(key: str) -> ec.EllipticCurvePrivateKey:
    return ec.derive_private_key(int.from_bytes(_bytes(key), "big"), _CURVE)


def _point(key: ec.EllipticCurvePublicKey) -> bytes:
    return key.public_bytes(Encoding.X962, PublicFormat.UncompressedPoint)


def _derived(salt: bytes, material: bytes, about: bytes, length: int) -> bytes:
    return HKDF(algorithm=SHA256(), length=length, salt=salt, info=about).derive(material)


def _text(value: bytes) -> str:
    return base64.urlsafe_b64encode(value).decode().rstrip("=")


def _bytes(text: str) -> bytes:
    return base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
