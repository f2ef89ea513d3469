"""What makes two servers of the tests a cluster: a runner that dials them, and nginx in front."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path

from tests.support.hosts import started_runner, token_of
from tests.support.nginx import running_nginx
from tests.support.serving import RunningServer

_LISTS = {"OSTLER_REPOSITORY_FOLDER": "OSTLER_REPOSITORY_FOLDERS", "OSTLER_ALLOWED_ADDRESS": "OSTLER_ALLOWED_ADDRESSES"}


@contextmanager
def runner_and_nginx(
    state_dir: Path, first: RunningServer, other: RunningServer, args: Sequence[str], env: Mapping[str, str]
) -> Iterator[str]:
    """The address of nginx; the runner is linked to the first server, which makes all sessions."""
    folder = state_dir.with_name(f"{state_dir.name}-runner")
    token = None if (folder / "runner.json").exists() else token_of(first.url)
    addresses = ("--server", first.url, "--server", other.url)
    hosts = [server.url.removeprefix("http://") for server in (other, first)]
    with (
        started_runner(folder, *addresses, token=token, env={**_settings(args), **env}) as runner,
        running_nginx(state_dir.with_name(f"{state_dir.name}-nginx"), hosts[:1], hosts[1:]) as url,
    ):
        runner.wait_linked()
        yield url


def _settings(args: Sequence[str]) -> dict[str, str]:
    """What a server was started with, as variables of the runner, which has no such flags."""
    found: dict[str, list[str]] = {}
    for flag, value in pairwise(args):
        if flag.startswith("--") and not value.startswith("--"):
            name = f"OSTLER_{flag[2:].replace('-', '_').upper()}"
            found.setdefault(_LISTS.get(name, name), []).append(value)
    return {name: ",".join(values) for name, values in found.items()}
