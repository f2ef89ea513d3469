"""One coroutine per behaviour: what to script, what to answer, what must come out. No agent's name appears here."""

from ostler.conformance.cases import asks, faults, talk, work
from ostler.conformance.cases.claims import Case, merged

CASES: dict[str, Case] = merged(talk.CLAIMS, work.CLAIMS, asks.CLAIMS, faults.CLAIMS)
"""Id of a behaviour -> the case that shows it."""
