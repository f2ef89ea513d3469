"""Addresses of PostgreSQL databases."""

from contextlib import suppress
from typing import NamedTuple
from urllib.parse import parse_qsl, urlencode, urlsplit

from ostler.base.errors import SettingsError


class Address(NamedTuple):
    """One database, as a driver takes it and as people may see it."""

    url: str
    shown: str
    """Without password and options."""
    is_pooled: bool
    """Whether a pooler is between that gives each transaction another connection: nothing stays on a connection."""
    direct: str | None = None
    """The same database without the pooler."""

    @property
    def for_listening(self) -> "Address":
        """Where connections stay what they are, if that is known."""
        return self if self.direct is None else Address(self.direct, self.shown, is_pooled=False)

    @property
    def can_listen(self) -> bool:
        """Whether notifications arrive."""
        return self.direct is not None or not self.is_pooled

    @classmethod
    def reading(cls, text: str) -> "Address":
        """Take an address apart; `pgbouncer=true` and `direct=host:port` in it are ours."""
        shown = "postgresql://***"
        with suppress(ValueError):
            parts = urlsplit(text)
            query = dict(parse_qsl(parts.query))
            pooled = query.pop("pgbouncer", "false") == "true"
            direct = query.pop("direct", None)
            host = parts.netloc.rpartition("@")[2]
            if "@" not in parts.path and ("," in host or parts.port != 0):  # else a slash was not written as %2F
                user = f"{parts.username}@" if parts.username else ""
                shown = f"{parts.scheme}://{user}{host}{parts.path}"
                options = f"?{urlencode(query)}" if query else ""
                login = parts.netloc.rpartition("@")[0]
                other = f"{login}@{direct}" if login else direct
                return cls(
                    f"{parts.scheme}://{parts.netloc}{parts.path}{options}",
                    shown,
                    pooled,
                    f"{parts.scheme}://{other}{parts.path}{options}" if direct else None,
                )
        reason = "is no address. Write special characters of the password as %XX, as %2F for a slash."
        raise SettingsError(name="database", value=shown, reason=reason)
