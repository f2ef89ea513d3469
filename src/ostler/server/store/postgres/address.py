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

    @classmethod
    def reading(cls, text: str) -> "Address":
        """Take an address apart; `pgbouncer=true` in it is ours."""
        shown = "postgresql://***"
        with suppress(ValueError):
            parts = urlsplit(text)
            query = dict(parse_qsl(parts.query))
            pooled = query.pop("pgbouncer", "false") == "true"
            host = parts.netloc.rpartition("@")[2]
            if "@" not in parts.path and ("," in host or parts.port != 0):  # else a slash was not written as %2F
                user = f"{parts.username}@" if parts.username else ""
                shown = f"{parts.scheme}://{user}{host}{parts.path}"
                options = f"?{urlencode(query)}" if query else ""
                return cls(f"{parts.scheme}://{parts.netloc}{parts.path}{options}", shown, pooled)
        reason = "is no address. Write special characters of the password as %XX, as %2F for a slash."
        raise SettingsError(name="database", value=shown, reason=reason)
