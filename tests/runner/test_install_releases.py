"""Release files of each vendor, from a mirror on loopback: in their real form, with the sums that vendors publish."""

import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import msgspec
import pytest

from ostler.agents import ADAPTERS
from ostler.agents.adapter import Adapter, Installation
from ostler.agents.pi import VERSION, PiAdapter
from ostler.agents.sources import Download, OnPath, Source
from ostler.base.errors import InstallFailed
from ostler.runner.installs.finder import Finder
from ostler.runner.installs.installer import Installer
from tests.support.installing import SEARCH, Vendor, begun, npm_source, serving, tarball, zipped

PACK: dict[str, Callable[[dict[str, str]], bytes]] = {
    "tar.gz": tarball,
    "zip": zipped,
    "none": lambda files: next(iter(files.values())).encode(),
}
PLATFORMS = ("linux-x64", "linux-arm64", "linux-x64-musl", "darwin-arm64", "darwin-x64", "windows-x64")
CASES = [
    (adapter, source, platform)
    for adapter in ADAPTERS
    for source in adapter.sources
    if isinstance(source, Download)
    for platform in PLATFORMS
    if platform in source.platforms
]
NEWEST = "9.8.7"


@dataclass(frozen=True)
class Mirror:
    """Vendors' hosts as folders of one server."""

    vendor: Vendor

    def publish(self, source: Download, platform: str, version: str) -> str:
        """Put up a release for a platform as its vendor would; gives the sum of its file."""
        theirs = source.platforms[platform]
        program = source.program.format(platform=theirs)
        content = PACK[source.archive]({program: "#!/bin/sh\n", f"{Path(program).parent}/LICENSE": "free"})
        checksum = hashlib.sha256(content).hexdigest()
        url = source.url.format(version=version, platform=theirs)
        assets = [{"name": url.rpartition("/")[2], "digest": f"sha256:{checksum}"}, {"name": "x", "digest": None}]
        published = {"platforms": {theirs: {"checksum": checksum}}, "assets": assets}
        latest = NEWEST.encode() if source.version_url.endswith(("latest", ".txt")) else b""
        if "api.github.com" in source.version_url:
            latest = json.dumps({"tag_name": f"rust-v{NEWEST}"}).encode()
        self.vendor.files |= {self._path(source.version_url): latest, self._path(url): content}
        if source.checksum_url is not None:
            sums = source.checksum_url.format(version=version, platform=theirs)
            self.vendor.files[self._path(sums)] = json.dumps(published).encode()
        return checksum

    @staticmethod
    def _path(url: str) -> str:
        return f"/{url.partition('://')[2]}"


def installer(folder: Path, vendor: Vendor, platform: str) -> Installer:
    environ = {"HOME": str(folder)}
    return Installer(folder / "agents", environ=environ, search=SEARCH, platform=platform, mirror=f"{vendor.url}/")


@pytest.mark.parametrize(("adapter", "source", "platform"), CASES, ids=lambda each: getattr(each, "info", each))
def test_the_release_of_each_agent_is_installed_with_the_sum_that_its_vendor_tells(
    tmp_path: Path, adapter: Adapter, source: Download, platform: str
) -> None:
    version = source.version or NEWEST
    with serving() as vendor:
        checksum = Mirror(vendor).publish(source, platform, version)
        pinned = {platform: checksum} if source.checksums else {}
        made = installer(tmp_path, vendor, platform).install(
            adapter.info.id, (msgspec.structs.replace(source, checksums=pinned),)
        )
    assert made.version == version
    assert Path(made.path).read_text() == "#!/bin/sh\n"
    assert Path(made.path).stat().st_mode & 0o111


def test_every_agent_has_its_vendors_binary_with_a_sum_before_the_path_and_the_path_before_packages() -> None:
    summed = [a for a in ADAPTERS if any(isinstance(s, Download) and s.checksum_url for s in a.sources)]
    assert {adapter.info.id for adapter in summed} == {"claude-code", "codex", "opencode", "pi"}
    for adapter in summed:
        kinds = [type(source).__name__ for source in adapter.sources]
        assert kinds == sorted(kinds, key=["Download", "OnPath", "Npm"].index)


PI = tuple(source for source in PiAdapter().sources if isinstance(source, Download))


def test_a_file_that_is_not_the_pinned_one_is_refused_and_nothing_is_left(tmp_path: Path) -> None:
    with serving() as vendor:
        Mirror(vendor).publish(PI[0], "linux-x64", VERSION)
        with pytest.raises(InstallFailed, match=r"has the SHA-256 .* Nothing was installed"):
            installer(tmp_path, vendor, "linux-x64").install("pi", (*PI, npm_source(tmp_path)))
        assert not [path for path in vendor.asked if "api.github.com" in path], "a pinned sum needs no answer"
    assert not [path for path in (tmp_path / "agents").rglob("*") if path.name != "lock"][1:]


def test_another_version_than_the_pinned_one_has_the_sum_that_the_vendor_publishes(tmp_path: Path) -> None:
    with serving() as vendor:
        Mirror(vendor).publish(PI[0], "linux-x64", "0.99.0")
        made = installer(tmp_path, vendor, "linux-x64").install("pi", PI, version="0.99.0")
        assert made.version == "0.99.0"
        vendor.files[f"/{PI[0].checksum_url.partition('://')[2].format(version='0.98.0')}"] = b"{}"  # type: ignore[union-attr]  # Pi publishes sums
        with pytest.raises(InstallFailed, match="has no checksum for"):
            installer(tmp_path, vendor, "linux-x64").install("pi", PI, version="0.98.0")


def test_a_download_that_breaks_off_leaves_nothing_that_counts(tmp_path: Path) -> None:
    with serving() as vendor:
        Mirror(vendor).publish(PI[0], "linux-x64", VERSION)
        path = next(path for path in vendor.files if path.endswith("pi-linux-x64.tar.gz"))
        vendor.files[path] = lambda handler: begun(handler, 10**6, b"half")
        place = installer(tmp_path, vendor, "linux-x64")
        with pytest.raises(InstallFailed, match="broke off"):
            place.install("pi", PI)
        assert place.records("pi") == []
        made = place.install("pi", (*PI, npm_source(tmp_path)))
    assert (made.version, [each.source for each in place.records("pi")]) == ("1.2.3", ["npm"])


def test_a_machine_with_musl_gets_no_build_for_glibc(tmp_path: Path) -> None:
    told: list[str] = []
    with serving() as vendor:
        place = installer(tmp_path, vendor, "linux-x64-musl")
        made = place.install("pi", (*PI, npm_source(tmp_path)), progress=told.append)
        assert vendor.asked == []
    assert made.version == "1.2.3"
    assert "not from download: the vendor has no binary for linux-x64-musl" in told


def test_what_was_downloaded_with_its_sum_goes_before_the_path_and_that_before_a_package(tmp_path: Path) -> None:
    own = tmp_path / "bin" / "pi"
    own.parent.mkdir()
    own.write_text("#!/bin/sh\n")
    own.chmod(0o755)
    with serving() as vendor:
        checksum = Mirror(vendor).publish(PI[0], "linux-x64", VERSION)
        release = msgspec.structs.replace(PI[0], checksums={"linux-x64": checksum})
        place = installer(tmp_path, vendor, "linux-x64")
        sources: tuple[Source, ...] = (release, OnPath(program="pi"), npm_source(tmp_path))

        def found() -> Installation | None:
            adapter = PiAdapter()
            adapter.sources = sources
            return Finder([str(own.parent)], installer=place, named={}).find(adapter)

        place.install("pi", sources[2:])
        assert found() == Installation(path=str(own), command=(str(own),))
        made = place.install("pi", sources[:1])
        assert found() == made
