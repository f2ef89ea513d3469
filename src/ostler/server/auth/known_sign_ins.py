"""Sign-ins in browsers as this server knows them: in memory, and read again when another server may know more."""

import asyncio
import secrets
from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress

import msgspec
from msgspec.structs import replace

from ostler.base.clock import Clock, later
from ostler.base.errors import StoreUnavailable
from ostler.base.ids import new_id
from ostler.link.keys import hashed
from ostler.server.auth.claims import Grant
from ostler.server.store.access import Access, SignInRow

PREFIX = "sgn"
_PAUSE_SECONDS = 0.2
"""Between two looks for sign-ins of other servers: who makes secrets up makes us look no more often."""
_RENEW_SECONDS = 3600.0
"""How long a secret is used before the browser gets another one."""
_OVERLAP_SECONDS = 60.0
"""How long requests that were under way may still show the former one."""
_WRITE_SECONDS = 1.0
"""How long an answer waits for its new secret; without one the browser goes on with what it has."""


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
        self._by_hash = {each: row for row in rows for each in _hashes(row)}

    def _changed(self, row: SignInRow) -> None:
        others = {each: known for each, known in self._by_hash.items() if known.id != row.id}
        self._by_hash = others | dict.fromkeys(_hashes(row), row)

    def over(self, credentials: Iterable[str]) -> list[str]:
        """Those of these credentials that are sign-ins, and good no more."""
        known = {row.id for row in self._by_hash.values()}
        return [each for each in credentials if each.startswith(f"{PREFIX}_") and each not in known]

    def named(self, sign_in: str) -> SignInRow | None:
        """The sign-in with this id."""
        return next((row for row in self._by_hash.values() if row.id == sign_in), None)

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
        row = self._by_hash.get(secret_hash)
        if row is None or row.former_hash is None:
            return row
        now = self._clock.now()
        if secret_hash == row.hash and row.former_until is None:
            self._changed(replace(row, former_until=later(now, _OVERLAP_SECONDS)))
            noted = self._access.sign_in_renewed(row.id, later(now, _OVERLAP_SECONDS))
            noted.add_done_callback(lambda done: done.cancelled() or done.exception())  # the next look tells again
        if secret_hash == row.former_hash and row.former_until is not None and row.former_until <= now:
            await self.end(row.id)  # the browser has another one: who shows this one has copied it
            return None
        return row

    async def renewed(self, secret: str) -> str | None:
        """The new secret of a sign-in whose secret was used for long; None if it stays, or cannot be changed now."""
        shown, now = hashed(secret), self._clock.now()
        row = self._by_hash.get(shown)
        if row is None or not _is_due(row, shown, now):
            return None
        new = secrets.token_urlsafe(32)
        with suppress(TimeoutError, StoreUnavailable):
            changing = self._access.renew_sign_in(row.id, row.hash, hashed(new), shown, now)
            changing.add_done_callback(lambda done: done.cancelled() or done.exception())
            if await asyncio.wait_for(asyncio.shield(changing), _WRITE_SECONDS):
                self._changed(replace(row, hash=hashed(new), former_hash=shown, former_until=None, renewed_at=now))
                return new
        return None

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

    async def end_all(self, actor: str) -> int:
        """All of an actor are over, at every server, and what was opened with them ends; how many they were."""
        await self._refresh()
        ended = {row.id for row in self._by_hash.values() if row.actor == actor}
        await self._access.sign_out_everywhere(actor)
        await self._refresh()
        return len(ended)

    async def end_in(self, actor: str, tenant: str) -> int:
        """All of an actor are over in one tenant, as `end_all`; in others they are good still."""
        await self._refresh()
        ended = 0
        for row in {row.id: row for row in self._by_hash.values() if row.actor == actor}.values():
            grants = msgspec.json.decode(row.grants, type=tuple[Grant, ...])
            left = tuple(grant for grant in grants if grant.tenant != tenant)
            if not left:
                await self._access.sign_out(row.id)
            elif left != grants:  # by another id, so that what was opened in the tenant ends
                await self._access.narrow_sign_in(row.id, new_id(PREFIX), msgspec.json.encode(left).decode())
            ended += left != grants
        await self._refresh()
        return ended


def _hashes(row: SignInRow) -> tuple[str, ...]:
    return (row.hash,) if row.former_hash is None else (row.hash, row.former_hash)


def _is_due(row: SignInRow, shown: str, now: str) -> bool:
    """Whether a browser gets another secret: after a while, or again if it seems not to have got the last one."""
    since = row.renewed_at or row.created_at
    if shown == row.hash:
        return later(since, _RENEW_SECONDS) <= now
    return row.former_until is None and later(since, _OVERLAP_SECONDS) <= now
