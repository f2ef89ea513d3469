"""`ostler doctor --cluster`: all that servers share, every server, and every runner."""

from collections.abc import Iterator

from ostler.base.settings import Settings
from ostler.cli.api import connect
from ostler.cli.commands.doctor.engine import worker_checks
from ostler.cli.commands.doctor.finding import Check
from ostler.cli.commands.doctor.objects import bucket_checks
from ostler.cli.commands.doctor.runners import runner_checks
from ostler.cli.commands.doctor.servers import server_checks
from ostler.cli.commands.doctor.shared_database import database_checks
from ostler.cli.root import Target


def cluster_checks(settings: Settings, target: Target) -> Iterator[Check]:
    """One verdict for each part that there is."""
    if settings.database is None:
        hint = "Set OSTLER_DATABASE as the servers have it, if several share one."
        yield Check(level="ok", found="No database was named here, so none was looked at", next_step=hint)
        facts = None
    else:
        facts = yield from database_checks(settings.database)
        if facts is not None:
            yield from server_checks(facts, settings.ca_file)
    yield from worker_checks(settings)
    yield from bucket_checks(settings, facts)
    with connect(target) as client:
        yield from runner_checks(client)
