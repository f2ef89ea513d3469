"""Temporal is reached over TLS, with a certificate or a key of ours, as the settings say."""

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from temporalio.service import TLSConfig

from ostler.base.settings import Settings
from ostler.server.engine.temporal.connecting import Access, Unreachable, connected
from tests.support.certificates import Authority
from tests.support.patience import stretched
from tests.support.temporal_server import shared_temporal


def access(**given: object) -> Access:
    """How Temporal is reached by these settings."""
    settings = {"engine": "temporal://host/x", **given}
    return Access.reading(Settings(state_dir=Path("/nonexistent"), **settings))  # type: ignore[arg-type]


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while piece := await reader.read(65536):
        writer.write(piece)
        await writer.drain()
    writer.close()


@asynccontextmanager
async def guarded(authority: Authority, host: str, port: int) -> AsyncIterator[int]:
    """The port of somebody in front of Temporal who speaks TLS only, and wants a certificate."""
    pair = authority.pair("temporal", ["127.0.0.1"])
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pair.certificate, pair.key)
    context.load_verify_locations(authority.file)
    context.verify_mode = ssl.CERT_REQUIRED
    context.set_alpn_protocols(["h2"])

    opened: list[asyncio.StreamWriter] = []
    passing: list[asyncio.Task[None]] = []

    async def pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        to, back = await asyncio.open_connection(host, port)
        opened.extend((writer, back))
        passing.extend(map(asyncio.create_task, (_pump(reader, back), _pump(to, writer))))

    server = await asyncio.start_server(pass_on, "127.0.0.1", 0, ssl=context)
    try:
        yield int(server.sockets[0].getsockname()[1])
    finally:
        server.close()
        for writer in opened:
            writer.transport.abort()
        await asyncio.gather(*passing, *(writer.wait_closed() for writer in opened), return_exceptions=True)


async def test_it_is_reached_with_a_certificate_of_ours_and_not_without(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    host, _, namespace = shared_temporal().url.removeprefix("temporal://").partition("/")
    name, _, port = host.partition(":")
    async with guarded(authority, name, int(port)) as secure, asyncio.timeout(stretched(60)):
        ours = authority.pair("ostler")
        known = {"engine": f"temporal://127.0.0.1:{secure}/{namespace}", "engine_ca": str(authority.file)}
        shown = {"engine_certificate": str(ours.certificate), "engine_certificate_key": str(ours.key)}
        client = await connected(access(**known, **shown), "ostler-test")
        assert client.namespace == namespace
        with pytest.raises(Unreachable):
            await connected(access(**known), "ostler-test")


def test_a_key_is_sent_over_tls_only() -> None:
    found = access(engine_api_key="sekret")
    assert (found.api_key, found.tls) == ("sekret", True)


def test_tls_may_be_wanted_without_files_and_is_not_used_by_default() -> None:
    assert [access(engine_tls=True).tls, access().tls] == [True, False]


def test_files_are_read_and_passed_on(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    ours = authority.pair("ostler")
    found = access(
        engine_ca=str(authority.file),
        engine_certificate=str(ours.certificate),
        engine_certificate_key=str(ours.key),
    )
    assert found.tls == TLSConfig(
        server_root_ca_cert=authority.file.read_bytes(),
        client_cert=ours.certificate.read_bytes(),
        client_private_key=ours.key.read_bytes(),
    )
