"""What the claims of a token grant, by the rules of the operator."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from ostler.base.errors.access import NoRole
from ostler.base.redaction import printable
from ostler.base.setting_groups.identity import ClaimRule
from ostler.server.auth.scope import ROLES
from ostler.wire.access import Role

_MOST_VALUES, _LONGEST_VALUE = 500, 256


class Grant(NamedTuple):
    """A role in a project by its name, or in all projects of a tenant."""

    tenant: str
    project: str | None
    role: Role


class Person(NamedTuple):
    """Somebody whom a provider knows."""

    actor: str
    name: str
    """What people call them; empty if their provider does not tell."""
    grants: tuple[Grant, ...]
    claim_names: str
    """The names of the claims that their provider tells, and never the values."""
    hint: str = ""

    def without_role(self, rules: str) -> NoRole:
        """What they are told when none of the rules of this setting is about them."""
        return NoRole(actor=self.actor, rules=rules, claims=self.claim_names, hint=self.hint)


def person_of(actor: str, claims: Mapping[str, Any], rules: Sequence[ClaimRule]) -> Person:
    """Somebody with these claims."""
    hint = ""
    if "_claim_names" in claims or "hasgroups" in claims:
        hint = " It leaves out the groups, since there are too many: use app roles."
    name = claims.get("name") or claims.get("preferred_username") or claims.get("email") or ""
    names = ", ".join(sorted(printable(each, 40) for each in claims)[:40])
    return Person(actor, printable(str(name)), tuple(grants_of(claims, rules)), names, hint)


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
