"""The socket that a server listens on."""

import socket

from ostler.base.errors import SettingsError
from ostler.base.settings import Settings


def listen(settings: Settings) -> socket.socket:
    """Listen as the settings say, so that nobody else gets the port; raises if somebody has it."""
    try:
        family, _, _, _, address = socket.getaddrinfo(settings.host, settings.port, type=socket.SOCK_STREAM)[0]
        listener = socket.socket(family, socket.SOCK_STREAM)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        listener.listen(2048)
    except OSError as error:
        reason = f"cannot listen on {settings.host} ({error.strerror or error}). Choose another with --port or --host."
        raise SettingsError(name="port", value=settings.port, reason=reason) from error
    listener.setblocking(False)
    return listener
