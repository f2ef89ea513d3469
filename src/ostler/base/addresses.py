"""Which addresses of the network may be spoken to: public ones, and those that the operator names."""

import re
import socket
from fnmatch import fnmatchcase
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from urllib.parse import urlsplit

import msgspec

from ostler.base.errors import AddressRefused, SettingsError

Ip = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network
_RESOLVE_SECONDS = 10.0
_MOST_ADDRESSES = 16
_PORTS = {"http": 80, "https": 443, "ssh": 22}
_NAME = re.compile(r"(?!-)[a-z0-9_*-]{1,63}(?:\.[a-z0-9_*-]{1,63})*", re.ASCII)
_NUMBER = re.compile(r"(?:.*\.)?(?:[0-9]+|0x[0-9a-f]*)", re.ASCII)
"""Hosts that programs read as numbers: 127.1, 0177.0.0.1, 2130706433, 0x7f000001."""
_ODD = re.compile(r"[\x00-\x20\x7f\\]")
_PUBLIC_6 = IPv6Network("2000::/3")
_INDIRECT = tuple(map(ip_network, ("192.88.99.0/24", "2001::/32", "2002::/16")))
"""Public by their numbers, but what they lead to is another address."""


def networks_of(setting: str, named: tuple[str, ...]) -> tuple[Network, ...]:
    """The addresses and networks of a setting."""
    found = []
    for each in named:
        try:
            found.append(ip_network(each.strip().strip("[]"), strict=False))
        except ValueError:
            reason = "name an address such as 10.0.0.5 or a network such as 10.0.0.0/8."
            raise SettingsError(name=setting, value=each, reason=reason) from None
    return tuple(found)


def address_in(given: str) -> Ip | None:
    """The address in what a proxy or a socket says of a peer, with or without a port; None if it is none."""
    text = given.strip()
    host, _, port = text.rpartition(":")
    without_port = host if port.isdigit() and (host.endswith("]") or ":" not in host) else text
    try:
        found = ip_address(without_port.removeprefix("[").removesuffix("]"))
    except ValueError:
        return None
    mapped = found.ipv4_mapped if isinstance(found, IPv6Address) else None
    return mapped or found


class Target(msgspec.Struct, frozen=True, kw_only=True):
    """A host as an address names it, and the addresses it was found at; those are the ones to connect to."""

    host: str
    port: int
    found: tuple[str, ...] = ()


class Unresolved(Exception):
    """Nobody knows the address of a host now; that may pass."""


class AddressRules(msgspec.Struct, frozen=True, kw_only=True):
    """The operator's exceptions: hosts, patterns of hosts, addresses and networks."""

    hosts: tuple[str, ...] = ()
    networks: tuple[Network, ...] = ()

    @classmethod
    def reading(cls, named: tuple[str, ...]) -> "AddressRules":
        """The rules of a setting."""
        hosts, networks = [], []
        for each in named:
            try:
                networks.append(ip_network(each.strip().strip("[]"), strict=False))
            except ValueError:
                host = each.strip().lower().rstrip(".")
                if not _NAME.fullmatch(host):
                    reason = "name a host such as git.example.com, an address or a network such as 10.0.0.0/8."
                    raise SettingsError(name="allowed_addresses", value=each, reason=reason) from None
                hosts.append(host)
        return cls(hosts=tuple(hosts), networks=tuple(networks))

    def target(self, url: str, field: str) -> Target:
        """Read an address, without asking anybody about its host; raises AddressRefused."""
        if _ODD.search(url):  # programs differ in what they make of it
            raise _refused(url, field, "it is not an address.")
        try:
            parts = urlsplit(url)
            host, port = parts.hostname or "", parts.port or _PORTS.get(parts.scheme, 0)
        except ValueError:
            raise _refused(url, field, "it is not an address.") from None
        if parts.scheme not in _PORTS or not host:
            raise _refused(url, field, "it must begin with http:// or https:// and name a host.")
        return self.host(host, port, field)

    def host(self, host: str, port: int, field: str) -> Target:
        """The same for a host and a port."""
        name = host.lower().strip("[]").rstrip(".")
        literal = _literal(name)
        if literal is not None:
            self._check(literal, name, port, field)
            return Target(host=name, port=port, found=(str(literal),))
        if _NUMBER.fullmatch(name) or not _NAME.fullmatch(name) or "*" in name:
            raise _refused(
                f"{host[:200]}:{port}", field, "its host is neither a name nor an address in its usual form."
            )
        return Target(host=name, port=port)

    def resolved(self, target: Target, field: str) -> Target:
        """Find out where a host is, once; raises AddressRefused, or Unresolved. Blocks."""
        if target.found:
            return target
        try:
            answers = socket.getaddrinfo(target.host, target.port, type=socket.SOCK_STREAM)
        except (OSError, UnicodeError) as error:
            raise Unresolved(f"the host {target.host} cannot be found") from error
        found = tuple(dict.fromkeys(str(answer[4][0]) for answer in answers))[:_MOST_ADDRESSES]
        if not self.is_named(target.host):
            for each in found:
                self._check(ip_address(each.partition("%")[0]), target.host, target.port, field)
        return msgspec.structs.replace(target, found=found)

    async def checked(self, url: str, field: str) -> Target:
        """Read an address and find out where its host is; raises AddressRefused, or Unresolved."""
        target = self.target(url, field)
        if target.found or self.is_named(target.host):
            return target
        return await self.found(target, field)

    async def found(self, target: Target, field: str) -> Target:
        """As `resolved`, beside everything else and within a bound."""
        import asyncio  # noqa: PLC0415 - commands read settings without it

        try:
            return await asyncio.wait_for(asyncio.to_thread(self.resolved, target, field), _RESOLVE_SECONDS)
        except TimeoutError:
            raise Unresolved(f"the host {target.host} was not found within {_RESOLVE_SECONDS:g} seconds") from None

    def is_named(self, host: str) -> bool:
        """Whether the operator named this host."""
        return any(fnmatchcase(host, pattern) for pattern in self.hosts)

    def _check(self, address: Ip, host: str, port: int, field: str) -> None:
        inner = address.ipv4_mapped if isinstance(address, IPv6Address) else None
        named = any(each in network for network in self.networks for each in (address, inner) if each is not None)
        if not named and not is_public(address):
            where = f"{host} is" if str(address) == host else f"{host} is at {address},"
            hint = f"start the server with `--allowed-address {host}` (setting allowed_addresses)"
            raise _refused(f"{host}:{port}", field, f"{where} not a public address. If that is meant, {hint}.")


def is_public(address: Ip) -> bool:
    """Whether it is of the public network, and not one that leads to another address."""
    if not address.is_global or address.is_multicast or address.is_reserved or address.is_unspecified:
        return False
    if isinstance(address, IPv6Address) and address not in _PUBLIC_6:
        return False
    return not any(address in network for network in _INDIRECT)


def _literal(host: str) -> Ip | None:
    try:
        return ip_address(host) if "%" not in host else None
    except ValueError:
        return None


def _refused(shown: str, field: str, reason: str) -> AddressRefused:
    scheme, mark, rest = shown.partition("://")
    place = re.split(r"[/?#]", (rest or shown).rpartition("@")[2], maxsplit=1)[0]  # what is around it may be secret
    if mark and not place:
        place = f"{scheme}://"
    return AddressRefused(address=place[:200], field=field, reason=reason, errors={field: [reason]})
