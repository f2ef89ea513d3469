"""What a keeper waits for: descriptors, and children that die. Standard library only."""

import os
import select
import signal


class Bell:
    """Wakes a poll when a child has died."""

    def __init__(self) -> None:
        self.inlet, self._outlet = os.pipe()
        os.set_blocking(self.inlet, False)
        os.set_blocking(self._outlet, False)
        signal.signal(signal.SIGCHLD, lambda _number, _frame: None)
        signal.set_wakeup_fd(self._outlet, warn_on_full_buffer=False)

    def silence(self) -> None:
        """Forget the rings so far."""
        try:
            os.read(self.inlet, 4096)
        except BlockingIOError:
            return

    def close(self) -> None:
        """Give the descriptors back."""
        signal.set_wakeup_fd(-1)
        os.close(self.inlet)
        os.close(self._outlet)


class Watched:
    """Descriptors to wait for; to say the same again costs nothing."""

    def __init__(self) -> None:
        self._poll = select.epoll()
        self._events: dict[int, int] = {}
        self.poll = self._poll.poll

    def watch(self, descriptor: int, events: int) -> None:
        """Wait for this from now on; 0 for nothing at all, not even its end."""
        before = self._events.get(descriptor, 0)
        if events == before:
            return
        if not events:
            self._poll.unregister(descriptor)
        elif before:
            self._poll.modify(descriptor, events)
        else:
            self._poll.register(descriptor, events)
        self._events[descriptor] = events
