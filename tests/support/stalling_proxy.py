"""A TCP proxy on loopback whose connections a test cuts or stalls."""

import socket
import threading
from contextlib import suppress


class Proxy:
    """Passes every connection on to a port; `cut` ends all of them, `stall` lets nothing through."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._sockets: set[socket.socket] = set()
        self._flows = threading.Event()
        self._flows.set()
        self._refuses = False
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def url(self) -> str:
        """Where to dial."""
        return f"http://127.0.0.1:{self._listener.getsockname()[1]}"

    def cut(self) -> None:
        """End every connection, without a word to either end."""
        for each in list(self._sockets):
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)

    def stall(self) -> None:
        """Let nothing through any more, and close nothing."""
        self._flows.clear()

    def resume(self) -> None:
        """Let everything through again."""
        self._flows.set()

    def refuse(self) -> None:
        """End every connection, and let none begin until `accept`."""
        self._refuses = True
        self.cut()

    def accept(self) -> None:
        """Let connections begin again."""
        self._refuses = False

    def close(self) -> None:
        """No more connections."""
        self.resume()
        self.cut()
        self._listener.close()

    def __enter__(self) -> "Proxy":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                near, _ = self._listener.accept()
                if self._refuses:
                    near.close()
                    continue
                try:
                    far = socket.create_connection(("127.0.0.1", self._port))
                except OSError:
                    near.close()
                    continue
                self._sockets |= {near, far}
                for one, other in ((near, far), (far, near)):
                    threading.Thread(target=self._pump, args=(one, other), daemon=True).start()

    def _pump(self, source: socket.socket, target: socket.socket) -> None:
        with suppress(OSError):
            while data := source.recv(65536):
                self._flows.wait()
                target.sendall(data)
        for each in (source, target):
            with suppress(OSError):  # the other pump may have closed it
                each.shutdown(socket.SHUT_RDWR)
        self._sockets.discard(source)
        source.close()
