"""A peer of a session's SOCKS proxy: registers addresses, and brings each connection by a socket of its own."""

import asyncio
import json
import secrets
from contextlib import suppress
from typing import Any, NamedTuple
from urllib.parse import urlencode

import click
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import InvalidStatus, WebSocketException
from websockets.http11 import Response

from ostler.base.rendezvous import BAD, TAKEN
from ostler.base.retry import delays
from ostler.base.tls.contexts import File, trusting
from ostler.cli.api import address_of, token_of
from ostler.cli.root import Target
from ostler.client.calls import headers

_PIECE = 64 * 1024
_OVER = frozenset({404, 409, 410})
"""Answers after which a session has no peers any more."""
_TOO_MANY = 429
_OPTIONS: dict[str, Any] = {"compression": None, "max_size": 2**20, "ping_interval": 20}


class Dial(NamedTuple):
    """How the server is called."""

    url: str
    headers: dict[str, str]
    options: dict[str, Any]


async def register(server: Target, session: str, peer: str, targets: dict[str, str], role: str = "follower") -> None:
    """Let others of the session reach these addresses, as long as this runs and the session is not over.

    Raises if it is refused, or another peer has the name.
    """
    address, authority = address_of(server), File.named("ca_file", server.ca_file)
    place = f"ws{address.removeprefix('http').rstrip('/')}/api/v1/connect/socks/register"
    url = f"{place}?{urlencode({'sessionId': session, 'peerId': peer, 'role': role})}"
    sent = headers(token_of(server), server.project)
    options = {**_OPTIONS, "ssl": trusting(authority)} if address.startswith("https") else _OPTIONS
    pauses = delays(0.2, 5.0)
    was_there, instance = False, secrets.token_hex(16)
    while True:
        try:
            async with connect(url, additional_headers=sent, **options) as control:
                await control.send(json.dumps({"targets": targets, "instance": instance}))
                pauses, was_there = delays(0.2, 5.0), True
                await _serve(control, Dial(url, sent, options), targets)
                if control.close_code in {BAD, TAKEN}:
                    raise click.ClickException(f"{peer}: {control.close_reason}")
        except InvalidStatus as error:
            status, why = error.response.status_code, _why(error.response)
            if was_there and status in _OVER:
                click.echo(why, err=True)
                return
            if 400 <= status < 500 and status != _TOO_MANY:
                raise click.ClickException(why) from error
        except (OSError, WebSocketException):
            pass  # the server is away
        await asyncio.sleep(next(pauses))


def _why(answer: Response) -> str:
    try:
        return str(json.loads(answer.body or b"")["detail"])
    except (ValueError, KeyError, TypeError):
        return f"The registration was refused with {answer.status_code}."


async def _serve(control: ClientConnection, dial: Dial, targets: dict[str, str]) -> None:
    async with asyncio.TaskGroup() as group:
        with suppress(WebSocketException):  # the server is away; what was brought ends by itself
            async for message in control:
                words = json.loads(message)
                if words.get("type") == "open":
                    group.create_task(_bring(control, dial, words["stream"], targets[words["target"]]))


async def _bring(control: ClientConnection, dial: Dial, stream: str, target: str) -> None:
    """Connect to an address here, and to the server, and pass on what they say."""
    host, _, port = target.rpartition(":")
    try:
        reader, writer = await asyncio.open_connection(host.strip("[]"), int(port), limit=2 * _PIECE)
    except OSError:
        await _failed(control, stream)
        return
    try:
        url = f"{dial.url}&{urlencode({'stream': stream})}"
        async with connect(url, additional_headers=dial.headers, **dial.options) as data:
            ways = [asyncio.create_task(_out(reader, data)), asyncio.create_task(_in(writer, data))]
            try:
                await asyncio.gather(*ways)
            finally:
                for way in ways:
                    way.cancel()
                await asyncio.gather(*ways, return_exceptions=True)
    except InvalidStatus:
        await _failed(control, stream)
    except (OSError, WebSocketException):
        pass  # one side is gone, and the other hears it
    finally:
        writer.close()


async def _failed(control: ClientConnection, stream: str) -> None:
    with suppress(WebSocketException):
        await control.send(json.dumps({"type": "failed", "stream": stream}))


async def _out(reader: asyncio.StreamReader, data: ClientConnection) -> None:
    while piece := await reader.read(_PIECE):
        await data.send(piece)
    await data.send("end")


async def _in(writer: asyncio.StreamWriter, data: ClientConnection) -> None:
    async for message in data:
        if isinstance(message, str):
            writer.write_eof()
            return
        writer.write(message)
        await writer.drain()
    raise ConnectionAbortedError


def targets_of(given: tuple[str, ...]) -> dict[str, str]:
    """Addresses by name, from NAME=HOST:PORT."""
    found = {}
    for each in given:
        label, _, address = each.partition("=")
        if not label or not address.rpartition(":")[2].isdecimal():
            raise click.UsageError(f"'{each}' is not NAME=HOST:PORT, such as ssh=127.0.0.1:22")
        found[label] = address
    return found
