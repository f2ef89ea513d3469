"""How a case says which behaviour it shows."""

from collections.abc import Awaitable, Callable
from functools import wraps
from typing import Any

from ostler.conformance.driven import Driven
from ostler.conformance.stage import Stage

Case = Callable[[Stage], Awaitable[None]]
Scene = Callable[[Driven], Awaitable[None]]


class Claims:
    """The cases of one module by the behaviour they show."""

    def __init__(self) -> None:
        self.cases: dict[str, Case] = {}

    def case(self, behaviour: str) -> Callable[[Case], Case]:
        """This case shows that behaviour and starts its agents itself."""

        def register(case: Case) -> Case:
            self.cases[behaviour] = case
            return case

        return register

    def scene(self, behaviour: str, **fields: Any) -> Callable[[Scene], Scene]:
        """This scene with one agent shows that behaviour; its session is made with these fields."""

        def register(scene: Scene) -> Scene:
            @wraps(scene)
            async def case(stage: Stage) -> None:
                async with stage.agent(**fields) as agent:
                    await scene(agent)

            self.cases[behaviour] = case
            return scene

        return register


def merged(*claims: Claims) -> dict[str, Case]:
    """All cases; no behaviour is claimed twice."""
    found: dict[str, Case] = {}
    for each in claims:
        twice = found.keys() & each.cases.keys()
        if twice:
            raise ValueError(f"claimed by two cases: {', '.join(sorted(twice))}")
        found |= each.cases
    return found
