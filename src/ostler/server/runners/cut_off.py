"""A server that cannot reach the database, while another one can, is no place for runners."""

import asyncio
from collections.abc import Callable
from contextlib import suppress

from ostler.base.logs import Log
from ostler.base.tls.contexts import File, trusting
from ostler.server.store.peers import Peers

log = Log(__name__)
_LOOK_SECONDS = 3.0
_ANSWER_SECONDS = 5.0


class CutOff:
    """Knows whether runners are better off elsewhere; while the database is away for all, they stay."""

    def __init__(self, peers: Peers, ca_file: str | None = None) -> None:
        """`ca_file` has the authorities to trust at other servers."""
        self._peers = peers
        self._ca_file = ca_file
        self.is_cut_off = False

    async def watch(self, leave: Callable[[], object]) -> None:
        """Call `leave` again and again while this server is cut off."""
        while True:
            await asyncio.sleep(_LOOK_SECONDS)
            was, self.is_cut_off = self.is_cut_off, self._peers.is_cut_off() and await self._is_other_ready()
            if self.is_cut_off:
                if not was:
                    log.error("server.cut_off", reason="it cannot reach the database, and another server can")
                leave()

    async def _is_other_ready(self) -> bool:
        answers = await asyncio.gather(*map(self._is_ready, self._peers.others()))
        return any(answers)

    async def _is_ready(self, address: str) -> bool:
        import httpx  # noqa: PLC0415 - it would slow every start

        authority = File.named("ca_file", self._ca_file)
        verify = trusting(authority) if address.startswith("https") else False
        with suppress(httpx.HTTPError):
            async with httpx.AsyncClient(verify=verify, timeout=_ANSWER_SECONDS, trust_env=False) as client:
                return (await client.get(f"{address}/api/v1/readyz")).is_success
        return False
