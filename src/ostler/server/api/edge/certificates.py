"""The server's certificate: loaded at the start, and again when its files change or on SIGHUP; and those that runners
show."""

import asyncio
import ssl
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from fnmatch import fnmatchcase
from typing import Any, NamedTuple

from ostler.base.errors import SettingsError
from ostler.base.errors.runners import RunnerRefused
from ostler.base.logs import Log
from ostler.base.settings import Settings
from ostler.base.tls.contexts import File, serving, trusting

log = Log(__name__)
SHOWN = "ostler.certificate"
"""In the state of a scope: the names in the certificate that the client showed; absent if it showed none."""
_LOOK_SECONDS = 5.0


class Certificates(NamedTuple):
    """The files of a server, and the context that its connections begin with."""

    certificate: File
    key: File | None
    client_authority: File | None
    context: ssl.SSLContext

    @classmethod
    def reading(cls, settings: Settings) -> "Certificates | None":
        """Those of the settings; None for a server without TLS."""
        if (trusted := File.named("ca_file", settings.ca_file)) is not None:
            trusting(trusted)
        certificate, key = File.named("tls_cert", settings.tls_cert), File.named("tls_key", settings.tls_key)
        if certificate is None:
            return None
        authority = File.named("tls_client_ca", settings.tls_client_ca)
        return cls(certificate, key, authority, serving(certificate, key, authority))

    async def follow(self, asked: asyncio.Event, serve: Callable[[ssl.SSLContext], Awaitable[None]]) -> None:
        """Have renewed files served, for connections that begin from now on; files that will not do are left alone.

        `asked` is set by who wants them to be read now.
        """
        seen = self._stamps()
        while True:
            with suppress(TimeoutError):
                await asyncio.wait_for(asked.wait(), _LOOK_SECONDS)
            if (found := self._stamps()) != seen or asked.is_set():
                seen = found
                asked.clear()
                await self._renew(serve)

    async def _renew(self, serve: Callable[[ssl.SSLContext], Awaitable[None]]) -> None:
        try:
            await serve(serving(self.certificate, self.key, self.client_authority))
        except (SettingsError, OSError) as error:
            log.warning("tls.not_renewed", reason=str(error))
        else:
            log.info("tls.renewed", certificate=str(self.certificate.path))

    def _stamps(self) -> list[tuple[int, int] | None]:
        return [file.stamp() for file in (self.certificate, self.key, self.client_authority) if file is not None]


def names_in(certificate: Mapping[str, Any]) -> tuple[str, ...]:
    """The names of a certificate as `ssl` reads it: its common name and the DNS names."""
    common = [value for part in certificate.get("subject", ()) for kind, value in part if kind == "commonName"]
    return (*common, *(value for kind, value in certificate.get("subjectAltName", ()) if kind == "DNS"))


def check_shown(scope: Mapping[str, Any], settings: Settings) -> None:
    """Raise for a runner without a certificate, where one is needed."""
    if settings.tls_client_ca is not None and SHOWN not in scope["state"]:
        reason = "This server takes a runner only with a certificate. Give it one with --client-cert and --client-key."
        raise RunnerRefused(reason=reason)


def check_name(scope: Mapping[str, Any], runner: str) -> None:
    """Raise for a runner that shows the certificate of another one."""
    names = scope["state"].get(SHOWN)
    if names is not None and not any(fnmatchcase(runner, name) for name in names):
        reason = f"The runner is called '{runner}', and its certificate is for {', '.join(names) or 'nobody'}."
        raise RunnerRefused(reason=f"{reason} Register it under that name with --name, or give it its own certificate.")
