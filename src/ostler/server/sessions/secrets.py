"""Which values of a session are nobody's business."""

from collections.abc import Iterator

from ostler.base.logs import never_log
from ostler.server.store.records import SessionSpec
from ostler.wire.providers import HttpMcpServer, StdioMcpServer


def keep_secret(spec: SessionSpec) -> None:
    """Keep what a session was entrusted with out of the server's log."""
    never_log(*_secrets(spec))


def _secrets(spec: SessionSpec) -> Iterator[str | None]:
    yield from spec.env.values()
    yield spec.provider.api_key if spec.provider is not None else None
    for server in spec.mcp_servers.values():
        match server:
            case StdioMcpServer():
                yield from server.env.values()
            case HttpMcpServer():
                yield from server.headers.values()
    if spec.workspace is not None and spec.workspace.repo.credential is not None:
        yield spec.workspace.repo.credential.token
    if spec.delivery is not None and spec.delivery.credential is not None:
        yield spec.delivery.credential.token
    if spec.task is not None:
        yield from (webhook.url for webhook in spec.task.webhooks)
        yield from (webhook.secret for webhook in spec.task.webhooks)
        delivery = spec.task.delivery
        yield delivery.credential.token if delivery is not None and delivery.credential is not None else None
