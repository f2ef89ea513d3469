"""Settings of encrypted connections; part of the settings."""

from typing import Annotated

import msgspec

from ostler.base.errors import SettingsError


def _about(description: str) -> msgspec.Meta:
    return msgspec.Meta(description=description)


class TlsSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a server shows, and whom it and runners trust."""

    tls_cert: Annotated[
        str | None,
        _about("File with the server's certificate and those between it and its authority; makes it speak https."),
    ] = None
    tls_key: Annotated[str | None, _about("File with the key of `tls_cert`, if it is not in the same one.")] = None
    tls_client_ca: Annotated[
        str | None,
        _about(
            "File with authorities: runners must show a certificate of one, for their name; clients may, see "
            "`tls_client_claims`."
        ),
    ] = None
    ca_file: Annotated[
        str | None,
        _about("File with authorities to trust instead of the system's, for https to other servers and commands."),
    ] = None


def check_tls(settings: TlsSettings) -> None:
    """Raise for files that mean nothing without another."""
    for name in ("tls_key", "tls_client_ca"):
        if settings.tls_cert is None and (value := getattr(settings, name)) is not None:
            raise SettingsError(name=name, value=value, reason="means nothing without tls_cert. Give --tls-cert too.")
