"""Where a server keeps files."""

from ostler.base.errors import SettingsError
from ostler.base.settings import Settings
from ostler.server.objects.local import LocalObjects
from ostler.server.objects.protocol import Objects

_SCHEMES = ("s3://", "gs://", "az://")


def open_objects(settings: Settings) -> Objects:
    """The state folder, or the bucket of the settings; to be called in a thread."""
    url = settings.object_store
    if url is None:
        return LocalObjects(settings.state_dir)
    if not url.startswith(_SCHEMES):
        reason = (
            "must begin with s3://, gs:// or az://, followed by the bucket and a prefix, such as s3://bucket/ostler."
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
