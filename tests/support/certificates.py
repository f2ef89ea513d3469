"""Certificates for tests: an authority of their own, and what it signs."""

import datetime
from collections.abc import Sequence
from ipaddress import ip_address
from pathlib import Path
from typing import NamedTuple

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

_PURPOSES = [ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]
HERE = ("127.0.0.1", "localhost")


class Pair(NamedTuple):
    """A certificate and its key, in files."""

    certificate: Path
    key: Path

    @property
    def served(self) -> tuple[str, ...]:
        """As a server gets them."""
        return ("--tls-cert", str(self.certificate), "--tls-key", str(self.key))

    @property
    def shown(self) -> tuple[str, ...]:
        """As a runner gets them."""
        return ("--client-cert", str(self.certificate), "--client-key", str(self.key))


class Authority:
    """Signs certificates."""

    def __init__(self, folder: Path, name: str = "authority") -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._folder = folder
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = _named(name)
        unsigned = _unsigned(self._name, self._name, self._key, -1, 3650)
        self._certificate = unsigned.add_extension(x509.BasicConstraints(ca=True, path_length=None), True).sign(
            self._key, hashes.SHA256()
        )
        self.file = folder / f"{name}.pem"
        self.file.write_bytes(self._certificate.public_bytes(serialization.Encoding.PEM))

    @property
    def trusted(self) -> tuple[str, ...]:
        """As whoever trusts it gets it."""
        return ("--ca-file", str(self.file))

    def pair(
        self, name: str, hosts: Sequence[str] = HERE, *, since: float = -1, days: float = 30, file: str | None = None
    ) -> Pair:
        """A certificate for these hosts, valid from so many days ago until so many days from now."""
        key = ec.generate_private_key(ec.SECP256R1())
        names = x509.SubjectAlternativeName([_host(host) for host in hosts])
        unsigned = _unsigned(_named(name), self._name, key, since, days)
        made = (
            unsigned.add_extension(names, critical=False)
            .add_extension(x509.ExtendedKeyUsage(_PURPOSES), critical=False)
            .sign(self._key, hashes.SHA256())
        )
        pair = Pair(self._folder / f"{file or name}.crt", self._folder / f"{file or name}.key")
        _write(pair.key, key.private_bytes(*_PLAIN))
        _write(pair.certificate, made.public_bytes(serialization.Encoding.PEM))
        return pair


_PLAIN = (serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())


def _write(file: Path, content: bytes) -> None:
    """Whole, as renewals are written: the old file is there until the new one is."""
    new = file.with_suffix(".new")
    new.write_bytes(content)
    new.chmod(0o600)
    new.replace(file)


def _named(name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])


def _host(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def _unsigned(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey, since: float, days: float
) -> x509.CertificateBuilder:
    now = datetime.datetime.now(datetime.UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now + datetime.timedelta(days=since))
        .not_valid_after(now + datetime.timedelta(days=days))
    )
