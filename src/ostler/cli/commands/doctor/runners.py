"""What `ostler doctor --cluster` says about every runner that a server knows."""

from collections.abc import Iterator

from ostler import __version__
from ostler.cli.commands.doctor.finding import Check
from ostler.client import Client, ClientError
from ostler.wire.runners import RunnerInfo


def runner_checks(client: Client) -> Iterator[Check]:
    """One verdict for each; a running server knows them."""
    try:
        found = client.runners.list().items
    except ClientError as error:
        hint = "Start a server, or check --endpoint and --token."
        yield Check(level="warn", found=f"Runners cannot be asked for: {str(error).rstrip('.')}", next_step=hint)
        return
    yield from map(_check, found)
    if not any(runner.health == "ok" and runner.slots != 0 and not runner.draining for runner in found):
        hint = "Add one with `ostler runners token` and `ostler runner`, or give the server --local-slots."
        yield Check(level="warn", found="No runner takes sessions now", next_step=hint)


def _check(runner: RunnerInfo) -> Check:
    name = f"Runner {runner.name}"
    if runner.health != "ok":
        since = f"since {runner.last_beat}" if runner.last_beat is not None else "since this server started"
        hint = f"Start it there, look at its way here, or forget it with `ostler runners remove {runner.name}`."
        return Check(level="fail", found=f"{name} is not linked {since}", next_step=hint)
    found = f"{name} is linked, heard at {runner.last_beat}"
    if runner.version != __version__:
        found = f"{found}, version {runner.version}, this is {__version__}"
        return Check(level="warn", found=found, next_step="Upgrade the older one.")
    return Check(level="ok", found=f"{found}, drains" if runner.draining else found)
