"""Everything that server and runner say to each other is the same after it was encoded and decoded."""

from string import Formatter
from types import ModuleType
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings

from ostler.base import errors
from ostler.base.errors import OstlerError
from ostler.link.messages import Failure, Verb, error_of, failure
from ostler.link.remote import CONNECTION, REGISTRY, RUNNER, SINK
from ostler.wire import agents, grants, providers, provisioning, running, workspaces
from ostler.wire.events import EVENTS
from ostler.wire.running import Draft
from tests.link.structs import drafts, values_of


def structs_in(*modules: ModuleType) -> list[type[msgspec.Struct]]:
    found = [kind for module in modules for kind in vars(module).values() if isinstance(kind, type)]
    return sorted({kind for kind in found if issubclass(kind, msgspec.Struct)}, key=str)


def survives(value: Any, kind: Any) -> None:
    assert msgspec.msgpack.decode(msgspec.msgpack.encode(value), type=kind) == value
    assert msgspec.json.decode(msgspec.json.encode(value), type=kind) == value


@pytest.mark.parametrize(
    "kind", structs_in(running, grants, workspaces, provisioning, agents, providers), ids=lambda kind: kind.__name__
)
def test_a_struct_of_the_link_survives(kind: type[msgspec.Struct]) -> None:
    @settings(max_examples=20, deadline=None, database=None)
    @given(values_of(kind))
    def check(value: msgspec.Struct) -> None:
        survives(value, kind)

    check()


@pytest.mark.parametrize(
    "verb", [*RUNNER.values(), *REGISTRY.values(), *CONNECTION.values(), *SINK.values()], ids=lambda verb: verb.name
)
def test_a_verb_survives_with_its_result(verb: Verb) -> None:
    @settings(max_examples=20, deadline=None, database=None)
    @given(values_of(verb.arguments), values_of(verb.result))
    def check(arguments: msgspec.Struct, result: Any) -> None:
        survives(arguments, verb.arguments)
        survives(result, verb.result)

    check()


def test_an_end_of_an_earlier_version_may_leave_out_what_came_later() -> None:
    call = msgspec.msgpack.encode({"agent": "mock", "version": None})
    given = msgspec.msgpack.decode(call, type=RUNNER["install"].arguments)
    assert msgspec.structs.asdict(given) == {"agent": "mock", "version": None, "reinstall": None}


def test_every_error_survives() -> None:
    kinds = [kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, OstlerError)]
    assert len({kind.code for kind in kinds if kind is not OstlerError}) == len(kinds) - 1
    for kind in kinds[1:]:
        names: dict[str, Any] = {name: f"the {name}" for _, name, _, _ in Formatter().parse(kind.template) if name}
        sent = failure(7, kind(errors={"field": ["wrong"]}, **names))
        error = error_of(msgspec.msgpack.decode(msgspec.msgpack.encode(sent), type=Failure))
        assert (type(error), str(error), error.fields, error.errors) == (
            kind,
            str(kind(**names)),
            names,
            {"field": ["wrong"]},
        )


@pytest.mark.parametrize("fields", [{}, {"errors": "twice"}, {"session": "s", "self": 1}])
def test_an_error_that_another_version_words_otherwise_ends_no_link(fields: dict[str, Any]) -> None:
    error = error_of(Failure(id=7, code="session_not_found", fields=fields))
    assert (type(error), error.fields) == (errors.InternalError, {"reference": "session_not_found"})


@pytest.mark.parametrize("name", EVENTS)
def test_a_draft_survives_with_its_data(name: str) -> None:
    @settings(max_examples=20, deadline=None, database=None)
    @given(drafts(name))
    def check(draft: Draft) -> None:
        survives(draft, Draft)

    check()


def test_a_draft_of_no_known_type_is_refused() -> None:
    with pytest.raises(msgspec.ValidationError, match=r"'nothing\.known' is no type of an event"):
        msgspec.json.decode(b'{"type":"nothing.known","data":{}}', type=Draft)
