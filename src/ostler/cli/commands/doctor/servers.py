"""What `ostler doctor --cluster` says about every server of the database: asked as another server would ask it."""

import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from email.utils import parsedate_to_datetime
from typing import NamedTuple
from urllib.parse import quote

import msgspec

from ostler import __version__
from ostler.base.tls.contexts import File, Trust, trusting
from ostler.base.tls.faults import fault_of
from ostler.cli.commands.doctor.finding import Check
from ostler.wire.checking import DatabaseFacts, ServerFacts
from ostler.wire.system import Version

_SECONDS = 5.0
_AT_ONCE = 16
_CLOCK_SECONDS = 3.0
_REFUSED = frozenset({401, 403})
_SCOPE = quote('{"actor":"doctor","roles":["viewer"]}')


class _Answer(NamedTuple):
    version: str
    seconds: float
    clock_ahead: float


def server_checks(facts: DatabaseFacts, ca_file: str | None) -> Iterator[Check]:
    """One verdict for each; those that were stopped in order are counted only."""
    trust = Trust(trusting(File.named("ca_file", ca_file)), ca_file)
    here = [server for server in facts.servers if server.is_here]
    if stopped := len(facts.servers) - len(here):
        yield Check(level="ok", found=f"{stopped} servers were stopped in order")
    if not here:
        hint = "Start one with `ostler serve --database ...`."
        yield Check(level="warn", found="No server is registered in the database", next_step=hint)
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        yield from pool.map(lambda server: _check(server, facts.secret or "", trust), here)


def _check(server: ServerFacts, secret: str, trust: Trust) -> Check:
    name = f"Server {server.id} at {server.address}"
    try:
        answer = _ask(server.address, secret, trust)
    except urllib.error.HTTPError as error:
        if error.code in _REFUSED:
            hint = "Does it use this database, and is the address its own? See --advertise."
            return Check(level="fail", found=f"{name} does not take requests of other servers", next_step=hint)
        return Check(level="fail", found=f"{name} answers with {error.code}", next_step="Look into its log.")
    except (OSError, ValueError, msgspec.MsgspecError) as error:
        reason = getattr(error, "reason", error)
        fault = fault_of(reason, server.address, trust.ca_file) if isinstance(reason, BaseException) else None
        return _silent(server, name, fault or str(reason or type(error).__name__))
    return _verdict(server, name, answer)


def _ask(address: str, secret: str, trust: Trust) -> _Answer:
    """A page that needs the servers' secret, because of where it seems to come from."""
    headers = {"ostler-relay": secret, "ostler-relay-scope": _SCOPE, "Origin": "http://ostler-doctor.invalid"}
    request = urllib.request.Request(f"{address}/api/v1/version", headers=headers)  # noqa: S310  servers wrote it
    begun, asked = time.perf_counter(), time.time()
    opener = urllib.request.build_opener(
        urllib.request.ProxyHandler({}), urllib.request.HTTPSHandler(context=trust.context)
    )
    with opener.open(request, timeout=_SECONDS) as answer:
        found = msgspec.json.decode(answer.read(), type=Version)
        took = time.perf_counter() - begun
        there = parsedate_to_datetime(answer.headers["Date"]).timestamp() if answer.headers["Date"] else asked
    return _Answer(found.version, took, there - asked)


def _silent(server: ServerFacts, name: str, reason: str) -> Check:
    if server.beats:
        hint = "Others have to reach it for the sessions it has: correct --advertise, or open the way."
        return Check(level="fail", found=f"{name} is alive but cannot be reached from here ({reason})", next_step=hint)
    hint = "Start it again with its state folder: its own machine's sessions wait for it."
    return Check(level="fail", found=f"{name} is lost ({reason})", next_step=hint)


def _verdict(server: ServerFacts, name: str, answer: _Answer) -> Check:
    found = f"{name} answers other servers in {answer.seconds * 1000:.0f} ms, version {answer.version}"
    if not server.beats:
        hint = "It cannot write to the database; look into its log."
        return Check(level="fail", found=f"{found}, but its beat stands still", next_step=hint)
    if abs(answer.clock_ahead) > _CLOCK_SECONDS + 2 * answer.seconds:  # a busy server dates its answers late
        ahead = f"its clock is {abs(answer.clock_ahead):.0f} s {'ahead' if answer.clock_ahead > 0 else 'behind'}"
        hint = "Nothing is decided by it, but times in logs do not fit: run NTP there."
        return Check(level="warn", found=f"{found}, {ahead}", next_step=hint)
    if answer.version != __version__:
        return Check(level="warn", found=f"{found}, this is {__version__}", next_step="Upgrade the older one.")
    return Check(level="ok", found=found)
