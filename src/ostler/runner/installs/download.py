"""Vendors' own binaries: the newest version, the file, its checksum, and what is inside."""

import hashlib
import re
import time
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Any, assert_never

import httpx
import msgspec

from ostler.agents.sources import Download
from ostler.base.errors import ArchiveRefused, TooLarge
from ostler.runner.file_trees.unpacking import UnpackLimits, unpack
from ostler.runner.installs.toolbox import ChecksumWrong, SourceFailed, Toolbox, the_program

_SHA256 = re.compile(r"(?<![0-9A-Fa-f])[0-9A-Fa-f]{64}(?![0-9A-Fa-f])")
_SMALL = 4 * 2**20
_TELL_EVERY = 32 * 2**20
_SILENT_SECONDS = 30.0
_SLOWEST = 16 * 2**10
"""Bytes in a second, over a download; no release is here in time with fewer."""
_JUDGED_AFTER = 20.0
_MOST_BYTES = 2 * 2**30
_LIMITS = UnpackLimits(total_bytes=2 * _MOST_BYTES)


class Vendor:
    """One vendor's binary for one platform."""

    def __init__(
        self, source: Download, platform: str, box: Toolbox, *, connect_seconds: float, mirror: str | None = None
    ) -> None:
        self._source = source
        self._platform = source.platforms.get(platform)
        self._ours = platform
        self._box = box
        self._mirror = mirror
        self._timeout = httpx.Timeout(_SILENT_SECONDS, connect=connect_seconds)

    def build(self, content: Path, version: str | None) -> tuple[str, Path]:
        """Download and unpack into a folder; gives the version and the program."""
        if self._platform is None:
            raise SourceFailed(f"the vendor has no binary for {self._ours}")
        # proxies and certificates are taken from the environment, as every tool of the machine does
        with httpx.Client(timeout=self._timeout, follow_redirects=True, trust_env=True) as client:
            try:
                with self._box.cut_off(client.close):
                    version = version or self._source.version or self._newest(client)
                    file = self._fetch(client, version, content.with_name("download"))
            except (httpx.HTTPError, httpx.InvalidURL) as error:
                self._box.check()
                raise SourceFailed(_words(error)) from error
        return version, self._unpack(file, content)

    def _newest(self, client: httpx.Client) -> str:
        text = self._small(client, self._placed(self._source.version_url))
        version = re.sub(r"^\D*", "", _tag(text))
        if not re.fullmatch(r"\d[\w.+-]*", version):
            raise SourceFailed(f"{self._source.version_url} does not tell a version")
        return version

    def _small(self, client: httpx.Client, url: str) -> str:
        self._box.check()
        with client.stream("GET", url) as answer:
            answer.raise_for_status()
            body = b""
            for chunk in answer.iter_bytes():
                self._box.check()
                body += chunk
                if len(body) > _SMALL:
                    raise SourceFailed(f"{url} answers with far too much")
        return body.decode(errors="replace").strip()

    def _fetch(self, client: httpx.Client, version: str, file: Path) -> Path:
        url = self._filled(self._source.url, version)
        wanted = self._checksum(client, version, url)
        found = self._save(client, url, file)
        if wanted is not None and found != wanted:
            raise ChecksumWrong(f"{url} has the SHA-256 {found}, its vendor says {wanted}")
        return file

    def _checksum(self, client: httpx.Client, version: str, url: str) -> str | None:
        if version == self._source.version and (pinned := self._source.checksums.get(self._ours)) is not None:
            return pinned
        if self._source.checksum_url is None:
            return None
        address = self._filled(self._source.checksum_url, version)
        name = PurePosixPath(httpx.URL(url).path).name
        found = sha256_in(self._small(client, address), self._platform or "", name)
        if found is None:
            raise SourceFailed(f"{address} has no checksum for {name}")
        return found

    def _save(self, client: httpx.Client, url: str, file: Path) -> str:
        """Store the file; gives its SHA-256."""
        digest, size, reported, begun = hashlib.sha256(), 0, 0, time.monotonic()
        with client.stream("GET", url) as answer, file.open("wb") as out:
            answer.raise_for_status()
            if answer.headers.get("content-type", "").startswith("text/html"):
                raise SourceFailed(f"{answer.url.host} answers with a page instead of the file")
            for chunk in answer.iter_bytes():
                self._box.check()
                digest.update(chunk)
                out.write(chunk)
                size += len(chunk)
                if size > _MOST_BYTES:
                    raise SourceFailed(f"{url} is larger than {_MOST_BYTES} bytes")
                if (taken := time.monotonic() - begun) > _JUDGED_AFTER and size < taken * _SLOWEST:
                    raise SourceFailed(f"{answer.url.host} is too slow: {size} bytes in {taken:.0f} s")
                if size - reported >= _TELL_EVERY:
                    reported = size
                    self._box.progress(f"downloaded {size // 10**6} MB")
        return digest.hexdigest()

    def _filled(self, template: str, version: str) -> str:
        return self._placed(template.format(version=version, platform=self._platform))

    def _placed(self, url: str) -> str:
        """The address, below the mirror if there is one."""
        return url if self._mirror is None else f"{self._mirror.rstrip('/')}/{url.partition('://')[2]}"

    def _unpack(self, file: Path, content: Path) -> Path:
        program = self._source.program.format(platform=self._platform)
        match self._source.archive:
            case "none":
                file.rename(content / program)
            case "tar.gz" | "zip":
                self._box.progress("unpacking")
                _extract(file, content)
            case _:
                assert_never(self._source.archive)
        return the_program(content, program)


def _extract(archive: Path, folder: Path) -> None:
    try:
        unpack(archive, folder, _LIMITS)
    except (ArchiveRefused, TooLarge) as error:
        raise SourceFailed(str(error).rstrip(".")) from error


def sha256_in(text: str, platform: str, name: str) -> str | None:
    """The checksum that a text of JSON or of sha256sum tells for a platform or a file."""
    try:
        document = msgspec.json.decode(text)
    except msgspec.DecodeError:
        lines = text.splitlines()
        named = [line for line in lines if line.split()[-1:] in ([name], [f"*{name}"])]
        return _only_sum("\n".join(named or lines))
    return next((found for part in _parts_about(document, platform, name) if (found := _only_sum(part))), None)


def _only_sum(text: str) -> str | None:
    found = {each.lower() for each in _SHA256.findall(text)}
    return found.pop() if len(found) == 1 else None


def _parts_about(document: Any, platform: str, name: str) -> Iterator[str]:
    """The pieces of JSON that are about this platform or file, then the whole."""
    waiting = [document]
    while waiting:
        match waiting.pop():
            case dict() as found:
                if name == found.get("name"):
                    yield str(found)
                yield from (str(found[key]) for key in (platform, name) if key in found)
                waiting += found.values()
            case list() as found:
                waiting += found
            case _:
                pass
    yield str(document)


def _tag(text: str) -> str:
    try:
        document = msgspec.json.decode(text, type=dict[str, Any])
    except msgspec.MsgspecError:
        return text
    return str(document.get("tag_name", ""))


def _words(error: Exception) -> str:
    match error:
        case httpx.HTTPStatusError():
            return f"{error.request.url} answers {error.response.status_code}"
        case httpx.ConnectError() | httpx.ConnectTimeout():
            return f"{error.request.url.host} cannot be reached"
        case httpx.TimeoutException():
            return f"{error.request.url.host} went silent"
        case httpx.RequestError():
            return f"{error.request.url.host} broke off ({error})"
        case _:
            return str(error)
