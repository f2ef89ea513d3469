"""Where a server keeps files."""

from pathlib import Path

from ostler.base.errors import SettingsError
from ostler.base.settings import Settings
from ostler.server.objects.local import LocalObjects
from ostler.server.objects.protocol import Objects

_SCHEMES = ("s3://", "gs://", "az://")
_FOLDER = "file://"


def open_objects(settings: Settings) -> Objects:
    """The state folder, or the bucket or shared folder of the settings; to be called in a thread."""
    url = settings.object_store
    if url is None:
        return LocalObjects(settings.state_dir)
    if url.startswith(_FOLDER):
        return _shared_folder(url)
    if not url.startswith(_SCHEMES):
        reason = (
            "must begin with s3://, gs:// or az://, followed by the bucket and a prefix, such as s3://bucket/ostler, "
            "or with file:// and a folder that all servers have."
        )
        raise SettingsError(name="object_store", value=url.partition("?")[0], reason=reason)
    try:
        from ostler.server.objects.bucket import BucketObjects  # noqa: PLC0415  most servers do without its driver
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "obstore":
            raise
        reason = "needs the package obstore. Install it with: pip install 'ostler[objects]'"
        raise SettingsError(name="object_store", value=url, reason=reason) from error
    return BucketObjects.open(settings)


def _shared_folder(url: str) -> Objects:
    folder = Path(url.removeprefix(_FOLDER))
    if not folder.is_absolute() or not folder.is_dir():
        reason = "names no folder of this machine. Write file:// and an absolute path; make the folder, or mount it."
        raise SettingsError(name="object_store", value=url, reason=reason)
    return LocalObjects(folder)
