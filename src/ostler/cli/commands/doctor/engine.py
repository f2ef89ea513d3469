"""What `ostler doctor` says about the engine that carries durable work, if it is another program."""

from collections.abc import Iterator

from ostler.base.errors import SettingsError
from ostler.base.settings import Settings
from ostler.cli.commands.doctor.finding import Check


def engine_checks(settings: Settings) -> Iterator[Check]:
    """One verdict; none where the server itself is the engine."""
    if settings.engine is None:
        return
    found = _workers(settings)
    yield Check(level="ok", found=f"Engine {settings.engine} can be used") if isinstance(found, int) else found


def worker_checks(settings: Settings) -> Iterator[Check]:
    """One verdict that says too how many servers look for work there."""
    if settings.engine is None:
        return
    match _workers(settings):
        case Check() as problem:
            yield problem
        case 0:
            hint = "Start the servers with this --engine and --deployment; work waits meanwhile."
            yield Check(level="warn", found=f"Engine {settings.engine}: no server looks for work", next_step=hint)
        case count:
            yield Check(level="ok", found=f"Engine {settings.engine}: {count} servers look for work")


def _workers(settings: Settings) -> int | Check:
    try:
        from ostler.server.engine.temporal.checking import workers  # noqa: PLC0415 - most machines do without it

        found = workers(settings)
    except ModuleNotFoundError:
        hint = "Install it with: pip install 'ostler[temporal]'"
        return Check(level="fail", found="The package temporalio is missing", next_step=hint)
    except SettingsError as error:
        return Check(level="fail", found=str(error), next_step="Correct the flag, variable or config file.")
    if isinstance(found, int):
        return found
    hint = "Until then webhooks wait; sessions do not need it."
    return Check(level="fail", found=f"Engine: {found.rstrip('.')}", next_step=hint)
