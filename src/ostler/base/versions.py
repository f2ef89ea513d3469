"""What to say when a client and a server that do not understand each other are of different versions."""

import re

_DIGITS = re.compile(r"\d+")


def apart(client: str | None, server: str | None) -> str:
    """A sentence with both versions and which side to upgrade; empty if they are of one version, or one is unknown."""
    if not client or not server or client == server:
        return ""
    older = "client" if _numbers(client) < _numbers(server) else "server"
    return f" This client is of Ostler {client} and the server of {server}: upgrade the {older}."


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in _DIGITS.findall(version)[:3])
