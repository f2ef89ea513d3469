"""Archives that clients send ahead of a workspace, kept by their content until they have been used."""

import hashlib
import os
import re
import time
from collections.abc import AsyncIterable
from contextlib import suppress
from pathlib import Path

from ostler.base.errors import NotFound, TooLarge
from ostler.base.ids import new_id
from ostler.base.private import open_file
from ostler.wire.workspaces import Upload

_ID = re.compile(r"upl_[0-9a-f]{64}")
_OLD_SECONDS = 24 * 3600.0


class Uploads:
    """A folder of archives, each named by its SHA-256; the same bytes sent twice are one upload."""

    def __init__(self, folder: Path, *, max_bytes: int) -> None:
        self._folder = folder
        self._max_bytes = max_bytes

    async def receive(self, chunks: AsyncIterable[bytes]) -> Upload:
        """Store an archive as it comes in; raises TooLarge, and leaves nothing behind then."""
        fresh = self._folder / f"{new_id('new')}.part"
        digest, size = hashlib.sha256(), 0
        try:
            with open_file(fresh, new=True) as file:
                async for chunk in chunks:
                    size += len(chunk)
                    if size > self._max_bytes:
                        raise TooLarge(limit=self._max_bytes, setting="max_upload_bytes")
                    digest.update(chunk)
                    file.write(chunk)
            fresh.rename(self._folder / f"upl_{digest.hexdigest()}")
        finally:
            with suppress(FileNotFoundError):
                fresh.unlink()
        return Upload(id=f"upl_{digest.hexdigest()}", size=size, sha256=digest.hexdigest())

    def find(self, upload: str) -> tuple[str, Path]:
        """The key and the file of an upload; raises NotFound."""
        path = self._folder / upload if _ID.fullmatch(upload) else None
        if path is None or not path.exists():
            raise NotFound(what="upload", value=upload[:80], hint="Upload the archive first, or again.")
        os.utime(path)
        return upload, path

    def sweep(self, *, now: float | None = None) -> None:
        """Remove what was broken off, and what nobody has used for a day."""
        limit = (time.time() if now is None else now) - _OLD_SECONDS
        for path in self._folder.iterdir():
            if path.suffix == ".part" or path.stat().st_mtime < limit:
                path.unlink(missing_ok=True)
