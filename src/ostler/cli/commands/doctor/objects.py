"""What `ostler doctor` says about the bucket for files, if there is one."""

from collections.abc import Iterator

from ostler.base.errors import SettingsError
from ostler.base.settings import Settings
from ostler.cli.commands.doctor.finding import Check


def object_checks(settings: Settings) -> Iterator[Check]:
    """One verdict; none where files lie in the state folder."""
    if settings.object_store is None:
        return
    from ostler.server.objects.opening import open_objects  # noqa: PLC0415 - most machines do without it

    try:
        open_objects(settings)
    except SettingsError as error:
        yield Check(level="fail", found=str(error).rstrip("."), next_step="The server does not start without it.")
    else:
        yield Check(level="ok", found=f"Object store {settings.object_store} can be used")
