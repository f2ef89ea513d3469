"""`ostler api`: any operation of the server by its name, also of the doors that bring clients of their own."""

import re
import sys
from collections.abc import Mapping
from difflib import get_close_matches
from importlib import import_module
from typing import Any, NamedTuple, cast

import click

from ostler.cli.api import ApiCommand, address_of, connect, token_of
from ostler.cli.output import put, table
from ostler.cli.root import Target
from ostler.client.calls import Call, Method, segment
from ostler.client.plain import PlainTransport, suits
from ostler.client.transport import ANSWER_SECONDS, SILENCE_SECONDS, SyncTransport, check_exposure

_METHODS = ("get", "post", "put", "patch", "delete")
_STREAM = "text/event-stream"
_PLACE = re.compile(r"\{([^}]+)\}")


class Operation(NamedTuple):
    """One of the OpenAPI document."""

    name: str
    method: str
    path: str
    about: str
    in_path: tuple[str, ...]
    """What stands in its path."""
    questions: tuple[str, ...]
    """What may stand behind it."""
    media_type: str
    """What its body is."""
    is_stream: bool
    """Whether it answers without an end."""


@click.command(cls=ApiCommand)
@click.argument("name", metavar="[OPERATION]", required=False)
@click.argument("values", metavar="[NAME=VALUE]...", nargs=-1)
@click.option("--data", metavar="TEXT", help="The body; @FILE for that of a file, - for standard input.")
@click.option(
    "--timeout", type=click.FloatRange(min=0.1), default=ANSWER_SECONDS, show_default=True, metavar="SECONDS",
    help="How long an answer may take.",
)  # fmt: skip
@click.pass_obj
def command(target: Target, name: str | None, values: tuple[str, ...], data: str | None, timeout: float) -> None:
    """Call any OPERATION of the server, such as daemon.create; without one list them all.

    Values go into the path of the operation or behind it. Every operation is here, also those for editors, chats and
    tool clients, which have no command of their own.
    """
    with connect(target) as client:
        known = operations_of(client.system.openapi())
    if name is None:
        rows = [(each.name, each.method, each.path, each.about) for each in known.values()]
        click.echo(table(("OPERATION", "METHOD", "PATH", "WHAT IT DOES"), rows, "Nothing."))
        return
    call = call_of(_chosen(known, name), values, _body(data), timeout)
    transport = _transport(target, timeout)
    try:
        put(transport.run(call), None, as_json=False)
    finally:
        transport.close()
    if sys.stdout.isatty():
        click.echo()


def operations_of(document: Mapping[str, Any]) -> dict[str, Operation]:
    """All operations by their names."""
    found = [
        _operation(path, method, about)
        for path, methods in document["paths"].items()
        for method, about in methods.items()
        if method in _METHODS and "operationId" in about
    ]
    return {each.name: each for each in sorted(found)}


def _operation(path: str, method: str, about: Mapping[str, Any]) -> Operation:
    asked = [each["name"] for each in about.get("parameters", ()) if each.get("in") == "query"]
    answers = {media for each in about.get("responses", {}).values() for media in each.get("content", {})}
    bodies = list(about.get("requestBody", {}).get("content", {"application/json": {}}))
    return Operation(
        name=about["operationId"],
        method=method.upper(),
        path=path,
        about=about.get("summary", ""),
        in_path=tuple(_PLACE.findall(path)),
        questions=tuple(asked),
        media_type=bodies[0],
        is_stream=method == "get" and _STREAM in answers and "application/json" not in answers,
    )


def _chosen(known: Mapping[str, Operation], name: str) -> Operation:
    if name not in known:
        near = get_close_matches(name, known, n=3)
        hint = f"Did you mean {', '.join(near)}?" if near else "`ostler api` lists them."
        raise click.BadParameter(f"'{name}' is no operation of this server. {hint}", param_hint="OPERATION")
    if known[name].is_stream:
        raise click.BadParameter(
            f"'{name}' is a stream that has no end. Read it with `ostler events` or curl -N {known[name].path}.",
            param_hint="OPERATION",
        )
    return known[name]


def call_of(operation: Operation, values: tuple[str, ...], body: bytes | None, timeout: float) -> Call[bytes]:
    """The request that the words of a command mean."""
    given = [each.partition("=") for each in values]
    allowed = (*operation.in_path, *operation.questions)
    for name, sign, _ in given:
        if not sign or name not in allowed:
            takes = ", ".join(allowed) or "none"
            raise click.BadParameter(
                f"'{name}' is no value of {operation.name}; it takes: {takes}.", param_hint="VALUE"
            )
    chosen = {name: text for name, _, text in given}
    if missing := [name for name in operation.in_path if name not in chosen]:
        raise click.BadParameter(f"{operation.name} needs {missing[0]}=VALUE.", param_hint="VALUE")
    path = _PLACE.sub(lambda place: segment(chosen[place[1]]), operation.path)
    questions = tuple((name, text) for name, _, text in given if name not in operation.in_path)
    return Call(
        method=cast(Method, operation.method),
        path=path,
        decode=bytes,
        params=questions,
        body=body,
        timeout=timeout,
        media_type=operation.media_type,
    )


def _body(data: str | None) -> bytes | None:
    if data is None:
        return None
    if data == "-" or data.startswith("@"):
        with click.open_file(data.removeprefix("@"), "rb") as file:
            return bytes(file.read())
    return data.encode()


def _transport(target: Target, seconds: float) -> SyncTransport:
    address, token = address_of(target), token_of(target)
    check_exposure(address, token, insecure=target.insecure)
    if suits(address, token):
        return PlainTransport(address, token, seconds, target.project)
    http = import_module("ostler.client.sync_http").HttpTransport
    made: SyncTransport = http(address, token, seconds, SILENCE_SECONDS, target.ca_file, target.project)
    return made
