"""Through the proxy of a session to one of its followers: what ssh runs as its ProxyCommand."""

import os
import socket
import sys
import threading
from contextlib import suppress

import click
import msgspec

from ostler.wire.connecting import SocksAccess

VARIABLE = "OSTLER_SOCKS"
"""The proxy and its password as JSON: for programs that a leader starts, so that not each asks the server."""
_SECONDS = 30.0
_PIECE = 256 * 1024
_REASONS = {
    1: "too many connections of the session are open",
    2: "it is no address that this follower registered",
    4: "no such follower is there now",
    5: "the follower could not connect to its address",
}


def dial(access: SocksAccess, target: str) -> None:
    """Pass standard input and output to an address such as `lin-01:22` until both sides have said all."""
    host, _, port = target.rpartition(":")
    if not host or not port.isdecimal() or int(port) > 2**16 - 1:
        raise click.UsageError(f"'{target}' is not HOST:PORT, such as lin-01:22")
    try:
        connection = socket.create_connection((access.host, access.port), _SECONDS)
    except OSError as error:
        raise click.ClickException(f"The proxy at {access.host}:{access.port} does not answer: {error}") from error
    with connection:
        _greet(connection, access)
        _ask(connection, host, int(port))
        connection.settimeout(None)
        sender = threading.Thread(target=_send, args=(connection,), daemon=True)
        sender.start()
        while data := connection.recv(_PIECE):
            _write(data)


def _greet(connection: socket.socket, access: SocksAccess) -> None:
    name, password = access.username.encode(), access.password.encode()
    connection.sendall(b"\x05\x01\x02")
    if _exactly(connection, 2) != b"\x05\x02":
        raise click.ClickException("The proxy takes no passwords; it is not one of Ostler.")
    connection.sendall(bytes((1, len(name))) + name + bytes((len(password),)) + password)
    if _exactly(connection, 2)[1]:
        raise click.ClickException("The proxy refused the password: it is valid for an hour, for one session.")


def _ask(connection: socket.socket, host: str, port: int) -> None:
    name = host.encode()
    connection.sendall(b"\x05\x01\x00\x03" + bytes((len(name),)) + name + port.to_bytes(2, "big"))
    code = _exactly(connection, 10)[1]
    if code:
        raise click.ClickException(f"{host}:{port} cannot be reached: {_REASONS.get(code, f'code {code}')}.")


def _exactly(connection: socket.socket, count: int) -> bytes:
    found = b""
    while len(found) < count:
        more = connection.recv(count - len(found))
        if not more:
            raise click.ClickException("The proxy ended the connection.")
        found += more
    return found


def _send(connection: socket.socket) -> None:
    with suppress(OSError):
        while data := os.read(sys.stdin.fileno(), _PIECE):
            connection.sendall(data)
        connection.shutdown(socket.SHUT_WR)


def _write(data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(sys.stdout.fileno(), view) :]


def access_of(words: str) -> SocksAccess:
    """What a leader left in the environment."""
    return msgspec.json.decode(words, type=SocksAccess)
