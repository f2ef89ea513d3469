"""The manifest is whole: every behaviour has a case, every capability a behaviour or a reason to have none."""

from ostler.agents import ADAPTERS
from ostler.conformance.behaviours import BEHAVIOURS, BY_ID, WITHOUT_BEHAVIOUR
from ostler.conformance.cases import CASES
from ostler.conformance.rows import ROWS
from ostler.wire.agents import Capabilities


def test_every_behaviour_has_a_case_and_every_case_a_behaviour() -> None:
    assert set(CASES) == set(BY_ID)


def test_every_capability_has_a_behaviour_or_a_reason_to_have_none() -> None:
    shown = {behaviour.capability for behaviour in BEHAVIOURS}
    assert shown | set(WITHOUT_BEHAVIOUR) == set(Capabilities.__struct_fields__)
    assert shown & set(WITHOUT_BEHAVIOUR) == set()


def test_every_agent_of_the_table_has_a_row() -> None:
    assert set(ROWS) == {adapter.info.id for adapter in ADAPTERS}


def test_what_a_row_leaves_out_are_behaviours() -> None:
    assert {name for row in ROWS.values() for name in row.without} <= set(BY_ID)
