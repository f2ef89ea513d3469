"""What a server stores of the tokens and keys of runners."""

import hashlib


def hashed(secret: str) -> str:
    """The hash of a token or a key; both are long and random, so nobody can guess them from it."""
    return hashlib.sha256(secret.encode()).hexdigest()
