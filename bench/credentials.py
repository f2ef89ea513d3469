"""What it costs to know who asks: processor time of a request with an API key and with a JWT, beside one without.

`python -m bench.credentials` prints the section without writing it down.
"""

import http.client
import json
import os
import sys
import tempfile
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from pathlib import Path

from bench.scale import FULL, QUICK, Scale, median
from bench.web import Figure
from tests.support.providers import AUDIENCE, running_provider
from tests.support.serving import RunningServer, running_server

_TOKEN = "the-token-of-the-server"
_RULES = [{"claim": "/groups", "equals": "all", "tenant": "default", "role": "admin"}]
_REQUESTS, _FIRST = 3000, 300
_TICKS = os.sysconf("SC_CLK_TCK")
_HEAD = """`GET /api/v1/me` over one connection, {requests:,} times; processor time of the server, not time that passes,
so that other work beside the run counts little. The same key and the same token (ES256) each time, as clients do.
Medians of {rounds} rounds.

| figure | value | aim | reached |
|---|--:|--:|---|
"""
Measure = Callable[[], float]


def section(scale: Scale) -> str:
    """The table of all figures."""
    rounds = max(scale.rounds, 3)
    with ExitStack() as opened, tempfile.TemporaryDirectory(prefix="ostler-bench-") as folder:
        measures = _measures(opened, Path(folder))
        found: dict[str, list[float]] = {name: [] for name in measures}
        for _ in range(rounds):
            for name, measure in measures.items():
                found[name].append(measure())
    none, key, jwt = (median(found[name]) for name in ("none", "key", "jwt"))
    figures = [
        Figure("request without a credential", none, " us"),
        Figure("request with an API key", key, " us"),
        Figure("request with a JWT", jwt, " us"),
        Figure("API key, of one without", key / none * 100, " %", most=120),
        Figure("repeated JWT, of one without", jwt / none * 100, " %", most=120),
    ]
    head = _HEAD.format(requests=_REQUESTS, rounds=rounds)
    return head + "\n".join(figure.line for figure in figures)


def _measures(opened: ExitStack, folder: Path) -> dict[str, Measure]:
    """What is measured, by name; a server without a token and one with a provider are there for it."""
    provider = opened.enter_context(running_provider())
    args = ("--oidc-issuer", provider.issuer, "--oidc-audience", AUDIENCE, "--oidc-claims", json.dumps(_RULES))
    without = opened.enter_context(running_server(folder / "open"))
    guarded = opened.enter_context(running_server(folder / "guarded", "--token", _TOKEN, *args))
    made = _asked(guarded, "POST", "/api/v1/api-keys", _TOKEN, {"name": "bench", "role": "admin"})
    return {
        "none": lambda: _cost(without, {}),
        "key": lambda: _cost(guarded, {"authorization": f"ApiKey {json.loads(made)['key']}"}),
        "jwt": lambda: _cost(guarded, {"authorization": f"Bearer {provider.token(groups=['all'])}"}),
    }


def _asked(server: RunningServer, method: str, path: str, token: str, body: object) -> bytes:
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)
    headers = {"authorization": f"Bearer {token}", "content-type": "application/json"}
    connection.request(method, path, json.dumps(body), headers)
    answer = connection.getresponse().read()
    connection.close()
    return answer


def _cost(server: RunningServer, headers: Mapping[str, str]) -> float:
    """Microseconds of a processor for each request."""
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)
    begin = 0.0
    for number in range(_FIRST + _REQUESTS):
        if number == _FIRST:
            begin = _used(server.process.pid)
        connection.request("GET", "/api/v1/me", headers=dict(headers))
        answer = connection.getresponse()
        answer.read()
        if answer.status != http.HTTPStatus.OK:
            sys.exit(f"The server answered with {answer.status}.")
    connection.close()
    return (_used(server.process.pid) - begin) / _REQUESTS * 1e6


def _used(process: int) -> float:
    """Seconds of a processor that a process has used."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS


if __name__ == "__main__":
    print(section(QUICK if "--quick" in sys.argv else FULL))
