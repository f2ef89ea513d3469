"""Guests who misbehave while everything else goes on: readers that never read, archives that reach outside."""

import asyncio
import io
import tarfile
from contextlib import suppress
from itertools import count
from urllib.parse import urlsplit

from tests.chaos.clients import Caller
from tests.chaos.history import History

_HOLD_SECONDS = 5.0
_PAUSE_SECONDS = 0.5
OUTSIDE = "escaped-from-an-archive"


async def stall(url: str, session: str) -> None:
    """Ask for a session's stream from its beginning and read nothing of it, again and again."""
    host, port = urlsplit(url).hostname, urlsplit(url).port
    request = f"GET /api/v1/sessions/{session}/events/sse HTTP/1.1\r\nHost: {host}:{port}\r\n\r\n".encode()
    while True:
        with suppress(OSError):
            _, writer = await asyncio.open_connection(host, port)
            writer.transport.pause_reading()  # type: ignore[attr-defined]  # a socket's transport can
            writer.write(request)
            try:
                await asyncio.sleep(_HOLD_SECONDS)
            finally:
                writer.close()
        await asyncio.sleep(_PAUSE_SECONDS)


def lying_archive() -> bytes:
    """Members that climb out, a link to the outside, and a file behind that link."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as archive:
        link = tarfile.TarInfo("door")
        link.type, link.linkname = tarfile.SYMTYPE, "../../../../.."
        archive.addfile(link)
        for name in (f"../../../../{OUTSIDE}", f"door/{OUTSIDE}", "harmless"):
            member = tarfile.TarInfo(name)
            member.size = 5
            archive.addfile(member, io.BytesIO(b"horse"))
    return packed.getvalue()


async def send_archives(caller: Caller, history: History, over: asyncio.Event) -> None:
    """Until it is over, order sessions that begin with such an archive: refused or failed, it harms nobody."""
    content = lying_archive()
    for number in count(1):
        if over.is_set():
            return
        ticket = (await caller.post("/uploads")).json()
        if (await caller.put(f"/uploads/{ticket['token']}", content)).status_code == 200:
            token = f"archive{number}"
            repo = {"mode": "upload", "upload": ticket["token"]}
            answer = await caller.post("/sessions", agent="mock", title=token, repo=repo)
            if answer.status_code >= 500:
                history.violations.append(f"an archive that lies got {answer.status_code}: {answer.text}")
            if answer.status_code in {200, 201}:
                session = answer.json()["id"]
                history.created[token] = session
                history.deleted.add(session)
                await caller.delete(f"/sessions/{session}")
        await asyncio.sleep(_PAUSE_SECONDS)
