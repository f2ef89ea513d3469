"""What `ostler doctor` says about the bucket for files, if there is one."""

import time
from collections.abc import Iterator

from ostler.base.errors import OstlerError, SettingsError
from ostler.base.ids import new_id
from ostler.base.settings import Settings
from ostler.cli.commands.doctor.finding import Check
from ostler.wire.checking import DatabaseFacts

_CONTENT = b"written by `ostler doctor`"


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


def bucket_checks(settings: Settings, facts: DatabaseFacts | None) -> Iterator[Check]:
    """Whether the bucket does all that is asked of it, tried under a key that nobody else uses."""
    if settings.object_store is None:
        if facts is not None:
            yield _shared_files(facts)
        return
    from ostler.server.objects.opening import open_objects  # noqa: PLC0415 - most machines do without it

    name, key, begun = settings.object_store, f"doctor/{new_id('chk')}", time.perf_counter()
    try:
        objects = open_objects(settings)
        objects.put(key, _CONTENT)
        is_doubled = objects.create(key, b"written over it")
        written = objects.get(key)
        objects.remove(key)
        left = objects.get(key)
    except SettingsError as error:
        yield Check(level="fail", found=str(error).rstrip("."), next_step="The server does not start without it.")
        return
    except OstlerError as error:
        hint = "Give its user the right to read, write and delete there."
        yield Check(level="fail", found=f"Object store {name}: {str(error).rstrip('.')}", next_step=hint)
        return
    if is_doubled or (written, left) != (_CONTENT, None):
        wrong = "is not read as it was written" if written != _CONTENT else "is still there when it was deleted"
        wrong = "is written over where it must be new (conditional writes)" if is_doubled else wrong
        yield Check(level="fail", found=f"Object store {name}: an object {wrong}", next_step="Use another one.")
        return
    took = (time.perf_counter() - begun) * 1000
    yield Check(
        level="ok",
        found=f"Object store {name} writes, reads and deletes, and takes conditional writes; all in {took:.0f} ms",
    )


def _shared_files(facts: DatabaseFacts) -> Check:
    """What the servers themselves say about where they keep files."""
    folders = {server.files for server in facts.servers if server.is_here}
    if len(folders) == 1 and (folder := folders.pop()):
        hint = "Set OSTLER_OBJECT_STORE as the servers have it to have it tried."
        return Check(level="ok", found=f"The servers keep files in {folder}, which was not tried", next_step=hint)
    if sum(server.is_here for server in facts.servers) < 2:
        hint = "A second one needs --object-store, as this one does then."
        return Check(level="ok", found="No second server shares files with the first", next_step=hint)
    hint = "Give all servers the same --object-store: when a session changes servers its files are lost."
    return Check(level="fail", found="The servers share no object store", next_step=hint)
