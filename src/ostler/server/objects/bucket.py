"""Objects in a bucket of S3, GCS or Azure, by obstore."""

import functools
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Concatenate, ParamSpec, TypeVar

import obstore
from obstore.exceptions import AlreadyExistsError, BaseError
from obstore.store import ObjectStore, from_url

from ostler.base.errors import SettingsError, StoreUnavailable
from ostler.base.settings import Settings
from ostler.server.objects.protocol import Entry

P = ParamSpec("P")
T = TypeVar("T")


def _reported(
    verb: Callable[Concatenate["BucketObjects", P], T],
) -> Callable[Concatenate["BucketObjects", P], T]:
    """With what goes wrong in our words; what the library says has an address and a request in it."""

    @functools.wraps(verb)
    def call(self: "BucketObjects", /, *args: P.args, **kwargs: P.kwargs) -> T:
        try:
            return verb(self, *args, **kwargs)
        except (BaseError, OSError) as error:
            raise StoreUnavailable(reason=f"the object store cannot be used ({_short(error)})") from error

    return call


def _short(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0][:300]


class BucketObjects:
    """Implements Objects for any number of servers."""

    def __init__(self, store: ObjectStore) -> None:
        self._store = store

    @classmethod
    def open(cls, settings: Settings) -> "BucketObjects":
        """As the settings say; fails if it cannot be reached. Credentials are found as the provider's own tools do."""
        url = settings.object_store or ""
        config: dict[str, str] = {}
        if settings.object_store_endpoint is not None:
            config["endpoint"] = settings.object_store_endpoint
        if settings.object_store_region is not None:
            config["region"] = settings.object_store_region
        http = (settings.object_store_endpoint or "").startswith("http://")
        try:
            store = from_url(  # type: ignore[call-overload]  # which keys there are depends on the scheme
                url,
                config=config or None,
                client_options={"allow_http": http, "timeout": timedelta(seconds=30)},
                retry_config={"max_retries": 3, "retry_timeout": timedelta(seconds=15)},
            )
            opened = cls(store)
            obstore.list_with_delimiter(store, "attachments")
        except (BaseError, OSError, ValueError) as error:
            reason = f"cannot be used ({_short(error)}). Is the bucket there, and are the credentials right?"
            raise SettingsError(name="object_store", value=url, reason=reason) from error
        return opened

    @_reported
    def put(self, key: str, content: bytes) -> None:
        """Write an object; it is there when all of it is."""
        obstore.put(self._store, key, content)

    @_reported
    def create(self, key: str, content: bytes) -> bool:
        """Write an object where none is; the store itself decides who is first."""
        try:
            obstore.put(self._store, key, content, mode="create")
        except AlreadyExistsError:
            return False
        return True

    @_reported
    def get(self, key: str) -> bytes | None:
        """What an object holds."""
        try:
            return bytes(obstore.get(self._store, key).bytes())
        except FileNotFoundError:
            return None

    @_reported
    def entries(self, folder: str) -> list[Entry]:
        """All objects below a folder."""
        now = datetime.now(UTC)
        return [
            Entry(found["path"], (now - found["last_modified"]).total_seconds())
            for page in obstore.list(self._store, folder)
            for found in page
        ]

    @_reported
    def folders(self, folder: str) -> set[str]:
        """What keys have after the folder, up to the next slash."""
        found = obstore.list_with_delimiter(self._store, folder)
        return {prefix.rstrip("/").rpartition("/")[2] for prefix in found["common_prefixes"]}

    @_reported
    def remove(self, key: str) -> None:
        """Remove an object and all below it."""
        below = [entry.key for entry in self.entries(key)]
        for each in {key, *below}:
            try:
                obstore.delete(self._store, each)
            except FileNotFoundError:
                continue
