"""What `ostler doctor` says about the engine that carries durable work, if it is another program."""

from collections.abc import Iterator

from ostler.base.errors import SettingsError
from ostler.base.settings import Settings
from ostler.cli.commands.doctor.finding import Check


def engine_checks(settings: Settings) -> Iterator[Check]:
    """One verdict; none where the server itself is the engine."""
    if settings.engine is None:
        return
    try:
        from ostler.server.engine.temporal.checking import problem  # noqa: PLC0415 - most machines do without it

        found = problem(settings)
    except ModuleNotFoundError:
        hint = "Install it with: pip install 'ostler[temporal]'"
        yield Check(level="fail", found="The package temporalio is missing", next_step=hint)
    except SettingsError as error:
        yield Check(level="fail", found=str(error), next_step="Correct the flag, variable or config file.")
    else:
        if found is None:
            yield Check(level="ok", found=f"Engine {settings.engine} can be used")
        else:
            hint = "Until then webhooks wait; sessions do not need it."
            yield Check(level="fail", found=f"Engine: {found.rstrip('.')}", next_step=hint)
