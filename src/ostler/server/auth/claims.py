"""What the claims of a token grant, by the rules of the operator."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from ostler.base.setting_groups.identity import ClaimRule
from ostler.server.auth.scope import ROLES
from ostler.wire.access import Role

_MOST_VALUES, _LONGEST_VALUE = 500, 256


class Grant(NamedTuple):
    """A role in a project by its name, or in all projects of a tenant."""

    tenant: str
    project: str | None
    role: Role


def grants_of(claims: Mapping[str, Any], rules: Sequence[ClaimRule]) -> list[Grant]:
    """All grants, in the order of the rules; each once."""
    return list(dict.fromkeys(grant for rule in rules for grant in _granted(claims, rule)))


def _granted(claims: Mapping[str, Any], rule: ClaimRule) -> Iterator[Grant]:
    pattern = re.compile(rule.matches) if rule.matches is not None else None
    for value in _values(claims, rule.claim):
        if pattern is None:
            groups: dict[str, str] | None = {} if value == rule.equals else None
        else:
            found = pattern.fullmatch(value)
            groups = found.groupdict("") if found is not None else None
        if groups is None:
            continue
        role = _filled(rule.role, groups)
        if role in ROLES:  # a group may be called anything
            project = _filled(rule.project, groups) if rule.project is not None else None
            yield Grant(_filled(rule.tenant, groups), project, role)


def _filled(text: str, groups: Mapping[str, str]) -> str:
    for name, value in groups.items():
        text = text.replace(f"{{{name}}}", value)
    return text


def _values(claims: Mapping[str, Any], place: str) -> Iterator[str]:
    found: Any = claims
    for name in place[1:].split("/") if place.startswith("/") else [place]:
        step = name.replace("~1", "/").replace("~0", "~")
        if not isinstance(found, Mapping) or step not in found:
            return
        found = found[step]
    many = found if isinstance(found, list) else [found]
    for value in many[:_MOST_VALUES]:
        if isinstance(value, str) and len(value) <= _LONGEST_VALUE:
            yield value
        elif isinstance(value, bool):
            yield str(value).lower()
