"""Which client a request is from that a proxy has passed on."""

from ostler.base.addresses import Ip, Network, address_in
from ostler.server.api.edge.asgi import Scope

_NAME = b"x-forwarded-for"


class TrustedProxies:
    """The proxies that the operator names; what anybody else says of a client is not believed."""

    def __init__(self, networks: tuple[Network, ...]) -> None:
        self._networks = networks

    def name_client(self, scope: Scope) -> None:
        """Put the client into the scope: the last address of the way that is none of the proxies'."""
        if scope.get("client") is None:
            return
        nearest = scope["client"][0]
        for given in self._way(scope):
            if not self._is_trusted(address_in(nearest)):
                break
            if (before := address_in(given)) is None:  # nobody could be told apart by it
                break
            nearest = str(before)
        scope["client"] = (nearest, 0)

    def _way(self, scope: Scope) -> list[str]:
        """What the proxies say of where the request came from, the nearest first."""
        given = [value.decode("latin-1") for name, value in scope["headers"] if name == _NAME]
        return list(reversed(",".join(given).split(","))) if given else []

    def _is_trusted(self, address: Ip | None) -> bool:
        return address is not None and any(address in network for network in self._networks)
