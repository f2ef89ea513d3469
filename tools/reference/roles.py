"""The page about roles, straight from what the handlers of the routes declare."""

from collections import defaultdict

from ostler.server.auth.scope import REACHES, ROLES, NeededRole
from ostler.wire.access import Reach
from tools.reference.markdown import code, page, table

_INTRODUCTION = """
The least role, and how far it must reach, that each [operation](http-api.md#operations) asks for. A higher role may do
it too, and so may one that reaches further; `ostler whoami` tells both. What the words mean, and what is checked
beside, is in [roles](../explanation/roles.md).
"""
_PLACES: dict[Reach, str] = {"project": "of the project", "tenant": "of the tenant", "server": "of the server"}
_ORDER: tuple[NeededRole, ...] = ("anyone", *ROLES)


def roles_page(needs: dict[str, tuple[NeededRole, Reach]]) -> str:
    """A section for each role and reach that something needs."""
    found: defaultdict[tuple[NeededRole, Reach], list[str]] = defaultdict(list)
    for operation, need in needs.items():
        found[need].append(operation)
    parts = [_INTRODUCTION]
    for need in sorted(found, key=lambda each: (_ORDER.index(each[0]), REACHES.index(each[1]))):
        parts += [f"## {_title(*need)}", table(("of", "operations"), _rows(found[need]))]
    return page("Roles", *parts)


def _title(role: NeededRole, reach: Reach) -> str:
    return "Without a role" if role == "anyone" else f"{role.capitalize()} {_PLACES[reach]}"


def _rows(operations: list[str]) -> list[tuple[str, str]]:
    by_noun: defaultdict[str, list[str]] = defaultdict(list)
    for operation in operations:
        noun, _, verb = operation.partition(".")
        by_noun[code(noun) if verb else "sockets"].append(code(verb or noun.removeprefix("the socket ")))
    return [(noun, ", ".join(sorted(verbs))) for noun, verbs in sorted(by_noun.items())]
