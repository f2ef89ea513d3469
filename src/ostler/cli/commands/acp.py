"""`ostler acp`: an ACP agent on standard input and output, for editors; all it says comes from a server."""

import asyncio
import os
import sys
import threading
from urllib.parse import urlencode

import click
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidHandshake, InvalidStatus

from ostler.base.tls.contexts import File, trusting
from ostler.base.tls.faults import fault_of
from ostler.cli.api import ApiCommand, address_of, token_of
from ostler.cli.root import Target
from ostler.client.errors import BadAnswer, ConnectionLost, NotTrusted, ServerUnreachable
from ostler.client.transport import check_exposure

_READ_BYTES = 64 * 1024
_MAX_MESSAGE = 256 * 2**20


@click.command(cls=ApiCommand)
@click.option(
    "--agent", metavar="AGENT", help="Agent of the sessions that the editor starts; the server's default otherwise."
)
@click.option("--server", metavar="URL", help="Server to talk to; the same as --endpoint.")
@click.pass_obj
def command(target: Target, agent: str | None, server: str | None) -> None:
    """Be an ACP agent for an editor.

    Speaks the Agent Client Protocol on standard input and output. The editor can start sessions with any agent of the
    server, and load every session that the server has; they go on when the editor leaves.
    """
    chosen = target._replace(endpoint=server) if server else target
    asyncio.run(_bridge(address_of(chosen), chosen, agent))


async def _bridge(address: str, target: Target, agent: str | None) -> None:
    token = token_of(target)
    check_exposure(address, token, insecure=target.insecure)
    query = f"?{urlencode({'agent': agent})}" if agent else ""
    url = f"{address.rstrip('/').replace('http', 'ws', 1)}/acp{query}"
    headers = {"authorization": f"Bearer {token}"} if token else {}
    tls = trusting(File.named("ca_file", target.ca_file)) if url.startswith("wss") else None
    try:
        async with connect(url, additional_headers=headers, max_size=_MAX_MESSAGE, proxy=None, ssl=tls) as socket:
            await _talk(socket, address)
    except InvalidStatus as error:
        raise click.ClickException(_refusal(error)) from error
    except InvalidHandshake as error:
        raise BadAnswer(str(error)) from error
    except OSError as error:
        if (fault := fault_of(error, address, target.ca_file)) is not None:
            raise NotTrusted(address, fault) from error
        raise ServerUnreachable(address) from error


def _refusal(error: InvalidStatus) -> str:
    status = error.response.status_code
    hint = " Give the server's token with --token or OSTLER_TOKEN." if status == 401 else ""
    return f"The server refused the connection with status {status}.{hint}"


async def _talk(socket: ClientConnection, address: str) -> None:
    """Pass messages on both ways until the editor is done; a server that leaves is an error."""
    receiving = asyncio.create_task(_to_editor(socket))
    sending = asyncio.create_task(_to_server(socket))
    done, waiting = await asyncio.wait({receiving, sending}, return_when=asyncio.FIRST_COMPLETED)
    for task in waiting:
        task.cancel()
    await asyncio.wait({receiving, sending})
    if sending not in done or sending.exception() is not None:
        raise ConnectionLost(address, "the server stopped")


async def _to_editor(socket: ClientConnection) -> None:
    try:
        async for message in socket:
            text = message if isinstance(message, str) else message.decode()
            sys.stdout.write(f"{text}\n")
            sys.stdout.flush()
    except ConnectionClosed:
        return


async def _to_server(socket: ClientConnection) -> None:
    lines: asyncio.Queue[bytes | None] = asyncio.Queue(maxsize=16)
    loop = asyncio.get_running_loop()
    threading.Thread(target=_read_lines, args=(lines, loop), daemon=True).start()
    while (line := await lines.get()) is not None:
        if line.strip():
            await socket.send(line.decode(errors="replace"))


def _read_lines(lines: "asyncio.Queue[bytes | None]", loop: asyncio.AbstractEventLoop) -> None:
    """Read in a thread that may be left behind: no one can end a read of standard input."""
    rest = b""
    try:
        while chunk := os.read(0, _READ_BYTES):
            *whole, rest = (rest + chunk).split(b"\n")
            for line in whole:
                asyncio.run_coroutine_threadsafe(lines.put(line), loop).result()
        asyncio.run_coroutine_threadsafe(lines.put(None), loop).result()
    except (RuntimeError, OSError):  # the loop is gone, or the input is
        return
