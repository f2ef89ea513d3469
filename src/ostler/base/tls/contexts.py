"""Contexts for TLS made of files; what is wrong with a file is an error that names it."""

import ssl
from pathlib import Path
from typing import NamedTuple, NoReturn

from ostler.base.errors import SettingsError

_EXPIRED, _TOO_EARLY = 10, 9
"""What OpenSSL calls these two."""
_TURNS = 6


class File(NamedTuple):
    """A file, and the setting that names it."""

    setting: str
    path: Path

    @classmethod
    def named(cls, setting: str, path: str | Path | None) -> "File | None":
        """The file of a setting, which may name none."""
        return cls(setting, Path(path)) if path is not None else None

    def stamp(self) -> tuple[int, int] | None:
        """Changes whenever the file does; None while it is not there."""
        try:
            found = self.path.stat()
        except OSError:
            return None
        return found.st_mtime_ns, found.st_ino


class Trust(NamedTuple):
    """How servers are checked, with which file if not with what the system trusts, and what is shown to them."""

    context: ssl.SSLContext
    ca_file: str | Path | None
    shown: Path | None = None


def trusting(authority: File | None, certificate: File | None = None, key: File | None = None) -> ssl.SSLContext:
    """How a client checks servers: with these authorities instead of the system's; `certificate` is shown to them."""
    context = ssl.create_default_context(cafile=_holding(authority, "CERTIFICATE") if authority is not None else None)
    if certificate is not None:
        show(context, certificate, key)
    return context


def serving(certificate: File, key: File | None, client_authority: File | None) -> ssl.SSLContext:
    """What a server shows; clients may show a certificate of `client_authority`, and need not."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    show(context, certificate, key)
    if client_authority is not None:
        context.load_verify_locations(_holding(client_authority, "CERTIFICATE"))
        context.verify_mode = ssl.CERT_OPTIONAL
    _try_out(context, certificate)
    return context


def show(context: ssl.SSLContext, certificate: File, key: File | None) -> None:
    """Let a context show a certificate, from now on."""
    key = key or File(certificate.setting, certificate.path)
    path = _holding(certificate, "CERTIFICATE")

    def ask() -> NoReturn:
        raise _wrong(key, "is encrypted. Give a key without a password, readable by Ostler's own user only.")

    try:
        context.load_cert_chain(path, _holding(key, "PRIVATE KEY"), password=ask)
    except ssl.SSLError as error:
        if error.reason == "KEY_VALUES_MISMATCH":
            reason = f"does not fit the certificate in {path}. Give the key that the certificate was made for."
            raise _wrong(key, reason) from error
        reason = f"cannot be used with {key.path} ({error.reason or error}). Give both in PEM form."
        raise _wrong(certificate, reason) from error


def _holding(file: File, kind: str) -> Path:
    """The path, if there is something of this kind in the file."""
    try:
        text = file.path.read_bytes()
    except OSError as error:
        reason = f"cannot be read ({error.strerror or error}). Name a file that Ostler's user may read."
        raise _wrong(file, reason) from error
    if f"{kind}-----".encode() not in text:
        raise _wrong(file, f"has no {kind.lower()} in PEM form. Name the file that has it.")
    try:
        if kind == "CERTIFICATE":
            ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_verify_locations(cadata=text.decode("ascii", "ignore"))
    except ssl.SSLError as error:
        raise _wrong(file, "has a damaged certificate. Have it made again, in PEM form.") from error
    return file.path


def _wrong(file: File, reason: str) -> SettingsError:
    return SettingsError(name=file.setting, value=file.path, reason=reason)


def _try_out(server: ssl.SSLContext, certificate: File) -> None:
    """Let a client that knows the certificate itself check it, in memory: is it for servers, and valid today?"""
    client = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    client.check_hostname = False
    client.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    client.load_verify_locations(certificate.path)
    there, back = ssl.MemoryBIO(), ssl.MemoryBIO()
    ends = client.wrap_bio(back, there), server.wrap_bio(there, back, server_side=True)
    for _ in range(_TURNS):
        for end in ends:
            try:
                end.do_handshake()
            except ssl.SSLWantReadError:
                continue
            except ssl.SSLCertVerificationError as error:
                raise _wrong(certificate, _verdict(error)) from error


def _verdict(error: ssl.SSLCertVerificationError) -> str:
    match error.verify_code:
        case code if code == _EXPIRED:
            return "has expired. Renew the certificate; a server that runs takes the new file by itself."
        case code if code == _TOO_EARLY:
            return "is not valid yet. Look at the clock of this machine, or have the certificate made again."
        case _:
            return f"is of no use for a server ({error.verify_message}). Have it made for servers."
