"""Which hosts need no TLS: this machine itself, since nothing that is said to it can be read on the way."""

from contextlib import suppress
from ipaddress import ip_address


def is_loopback(host: str) -> bool:
    """Whether only this machine can be meant by it; names are not looked up."""
    with suppress(ValueError):
        return ip_address(host).is_loopback
    return host == "localhost"
