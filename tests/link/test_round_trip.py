"""Everything that server and runner say to each other is the same after it was encoded and decoded."""

from types import ModuleType
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ostler.wire import agents, providers, running, workspaces
from ostler.wire.events import EVENTS
from ostler.wire.running import Draft
from tests.link.structs import values_of


def structs_in(*modules: ModuleType) -> list[type[msgspec.Struct]]:
    found = [kind for module in modules for kind in vars(module).values() if isinstance(kind, type)]
    return sorted({kind for kind in found if issubclass(kind, msgspec.Struct)} - {Draft}, key=str)


def drafts(name: str) -> st.SearchStrategy[Draft]:
    data = values_of(EVENTS[name].__annotations__["data"])
    raw = st.none() | st.binary(max_size=8)
    return st.builds(Draft, st.just(name), data, synthetic=st.booleans(), raw=raw, time=st.none() | st.text())


def survives(value: Any, kind: Any) -> None:
    assert msgspec.msgpack.decode(msgspec.msgpack.encode(value), type=kind) == value
    assert msgspec.json.decode(msgspec.json.encode(value), type=kind) == value


@pytest.mark.parametrize("kind", structs_in(running, workspaces, agents, providers), ids=lambda kind: kind.__name__)
def test_a_struct_of_the_link_survives(kind: type[msgspec.Struct]) -> None:
    @settings(max_examples=20, deadline=None, database=None)
    @given(values_of(kind))
    def check(value: msgspec.Struct) -> None:
        survives(value, kind)

    check()


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
