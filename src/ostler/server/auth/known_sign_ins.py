"""Sign-ins in browsers as this server knows them: in memory, and read again when another server may know more."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable

from ostler.base.clock import Clock
from ostler.server.store.access import Access, SignInRow

PREFIX = "sgn"
_PAUSE_SECONDS = 0.2
"""Between two looks for sign-ins of other servers: who makes secrets up makes us look no more often."""


class KnownSignIns:
    """By the hash of the secret in the cookie."""

    def __init__(
        self, access: Access, clock: Clock, refresh: Callable[[], Awaitable[None]], *, is_shared: bool
    ) -> None:
        """`refresh` reads all rows again and has them taken; `is_shared` says that other servers may add some."""
        self._access = access
        self._clock = clock
        self._refresh = refresh
        self._is_shared = is_shared
        self._by_hash: dict[str, SignInRow] = {}
        self._read_at = 0.0
        self._one_at_a_time = asyncio.Lock()

    def take(self, rows: Iterable[SignInRow]) -> None:
        """These are all."""
        self._by_hash = {row.hash: row for row in rows}

    def over(self, credentials: Iterable[str]) -> list[str]:
        """Those of these credentials that are sign-ins, and good no more."""
        known = {row.id for row in self._by_hash.values()}
        return [each for each in credentials if each.startswith(f"{PREFIX}_") and each not in known]

    async def find(self, secret_hash: str) -> SignInRow | None:
        """The sign-in with this secret; another server may have added it a moment ago."""
        loop = asyncio.get_running_loop()
        asked = loop.time()
        if secret_hash not in self._by_hash and self._is_shared:
            async with self._one_at_a_time:
                if self._read_at < asked:  # else somebody read for all who had asked
                    await asyncio.sleep(self._read_at + _PAUSE_SECONDS - loop.time())
                    self._read_at = loop.time()
                    await self._refresh()
        return self._by_hash.get(secret_hash)

    async def add(self, new: SignInRow) -> None:
        """Somebody has signed in; sign-ins that are over are forgotten."""
        await self._access.forget_sign_ins(self._clock.now())
        await self._access.sign_in(new)
        await self._refresh()

    async def end(self, sign_in: str) -> str:
        """It is over, and what was opened with it ends; where it was begun, as far as that is known."""
        way = next((row.way for row in self._by_hash.values() if row.id == sign_in), "")
        await self._access.sign_out(sign_in)
        await self._refresh()
        return way
