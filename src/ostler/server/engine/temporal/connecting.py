"""Where Temporal is, how to reach it, and what to say when that fails."""

import dataclasses
import functools
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

from temporalio.api.failure.v1 import Failure
from temporalio.api.workflowservice.v1 import DescribeNamespaceRequest
from temporalio.client import Client
from temporalio.converter import DataConverter, DefaultFailureConverter, PayloadConverter
from temporalio.runtime import Runtime, TelemetryConfig
from temporalio.service import RPCError, RPCStatusCode, TLSConfig

from ostler.base.errors import SettingsError
from ostler.base.settings import Settings

_PORT = 7233
_FORM = "temporal://host:7233/namespace"


class Address(NamedTuple):
    """One namespace of a Temporal."""

    host: str
    namespace: str

    @classmethod
    def reading(cls, text: str) -> "Address":
        """Take an address apart."""
        try:
            parts = urlsplit(text)
            port = parts.port or _PORT
        except ValueError:
            parts, port = urlsplit(""), 0
        namespace = parts.path.strip("/")
        if parts.scheme != "temporal" or not parts.hostname or not namespace or "/" in namespace or parts.query:
            raise SettingsError(name="engine", value=text, reason=f"must be of the form {_FORM}.")
        if parts.username is not None:
            raise SettingsError(name="engine", value=_FORM, reason="holds no credentials; give engine_api_key instead.")
        host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
        return cls(f"{host}:{port}", namespace)

    def __str__(self) -> str:
        return f"temporal://{self.host}/{self.namespace}"


class Access(NamedTuple):
    """How we show who we are; files are read once."""

    address: Address
    api_key: str | None
    tls: bool | TLSConfig

    @classmethod
    def reading(cls, settings: Settings) -> "Access":
        """As the settings say."""
        address = Address.reading(settings.engine or "")
        certificate, key = _read(settings, "engine_certificate"), _read(settings, "engine_certificate_key")
        if (certificate is None) != (key is None):
            name = "engine_certificate" if certificate is None else "engine_certificate_key"
            raise SettingsError(
                name=name, value="", reason="engine_certificate and engine_certificate_key go together."
            )
        authority = _read(settings, "engine_ca")
        if authority is not None or certificate is not None:
            return cls(
                address,
                settings.engine_api_key,
                TLSConfig(server_root_ca_cert=authority, client_cert=certificate, client_private_key=key),
            )
        return cls(address, settings.engine_api_key, settings.engine_tls or settings.engine_api_key is not None)


def _read(settings: Settings, name: str) -> bytes | None:
    path = getattr(settings, name)
    try:
        return Path(path).read_bytes() if path is not None else None
    except OSError as error:
        raise SettingsError(name=name, value=path, reason=f"cannot be read ({error.strerror or error}).") from error


def queue_of(deployment: str) -> str:
    """Where all servers of a deployment find their work."""
    return f"ostler-{deployment}"


class Unreachable(Exception):
    """Temporal cannot be used now; says why, and what to do."""


async def connected(access: Access, identity: str) -> Client:
    """A client whose namespace is there; Unreachable if it cannot be had now."""
    address = access.address
    try:
        client = await Client.connect(
            address.host,
            namespace=address.namespace,
            api_key=access.api_key,
            tls=access.tls,
            identity=identity,
            data_converter=dataclasses.replace(DataConverter.default, failure_converter_class=_Tight),
            runtime=_runtime(),
        )
        await client.workflow_service.describe_namespace(DescribeNamespaceRequest(namespace=address.namespace))
    except RPCError as error:
        raise Unreachable(_reason(address, error)) from None
    except (RuntimeError, OSError, ValueError) as error:
        raise Unreachable(
            f"{address.host} cannot be reached ({error}). Is the address right, and Temporal running?"
        ) from None
    return client


class _Tight(DefaultFailureConverter):
    """Errors without the lines of code they come from."""

    def to_failure(self, exception: BaseException, payload_converter: PayloadConverter, failure: Failure) -> None:
        super().to_failure(exception, payload_converter, failure)
        failure.stack_trace = ""


@functools.cache
def _runtime() -> Runtime:
    """Its threads, once for the process; what they would print is said by us."""
    return Runtime(telemetry=TelemetryConfig(logging=None, metrics=None))


def _reason(address: Address, error: RPCError) -> str:
    match error.status:
        case RPCStatusCode.NOT_FOUND:
            return f"{address.host} has no namespace '{address.namespace}'. Create it, or correct --engine."
        case RPCStatusCode.UNAUTHENTICATED | RPCStatusCode.PERMISSION_DENIED:
            return f"{address.host} refuses us ({error.message}). Correct engine_api_key or engine_certificate."
        case _:
            return f"{address.host} cannot be used ({error.message})."
