"""A keeper's socket to the runner: orders come in, reports go out. Standard library only."""

import fcntl
import json
import os
import socket
import termios

_NOTHING = bytes(4)


class Line:
    """One runner at the other end; nothing here ever blocks."""

    def __init__(self, connection: socket.socket) -> None:
        connection.setblocking(False)
        self._connection = connection
        self._number = connection.fileno()
        self._received = bytearray()
        self._owed = bytearray()

    def fileno(self) -> int:
        """For polls."""
        return self._number

    @property
    def is_behind(self) -> bool:
        """Whether the runner has not taken all reports yet."""
        return bool(self._owed)

    @property
    def is_unheard(self) -> bool:
        """Whether the runner has yet to read what was said last."""
        try:
            return fcntl.ioctl(self._number, termios.TIOCOUTQ, _NOTHING) != _NOTHING
        except OSError:
            return False

    def orders(self) -> "list[tuple[dict[str, object], bytes]] | None":
        """The orders that are complete, each with its payload; None when the runner has gone."""
        try:
            chunk = self._connection.recv(2**18)
        except BlockingIOError:
            return []
        except OSError:
            chunk = b""
        if not chunk:
            return None
        self._received += chunk
        complete = []
        while (order := self._next()) is not None:
            complete.append(order)
        return complete

    def _next(self) -> "tuple[dict[str, object], bytes] | None":
        end = self._received.find(b"\n") + 1
        if not end:
            return None
        order = json.loads(bytes(self._received[:end]))
        whole = end + order.get("size", 0)
        if len(self._received) < whole:
            return None
        payload = bytes(self._received[end:whole])
        del self._received[:whole]
        return order, payload

    def say(self, fields: "dict[str, object]") -> None:
        """Report something, later if the runner does not listen now."""
        self._owed += json.dumps(fields).encode() + b"\n"
        self.flush()

    def ring(self) -> bool:
        """Say that there is output; False if the runner does not listen now."""
        if not self._owed:
            try:
                if os.write(self._number, b"\n"):
                    return True
            except OSError:
                pass
        self._owed += b"\n"
        self.flush()
        return not self._owed

    def flush(self) -> None:
        """Send what can be sent."""
        try:
            while self._owed:
                del self._owed[: self._connection.send(self._owed)]
        except BlockingIOError:
            return
        except OSError:
            self._owed.clear()  # the runner is gone; that is handled where we listen

    def close(self) -> None:
        """Hang up."""
        self._connection.close()
