"""Amp."""

from ostler.agents.amp import AmpAdapter
from tests.conformance.amp_service import AmpService
from tests.conformance.driver import Row

ROW = Row(
    AmpAdapter(),
    provider=None,
    model=None,
    service=AmpService,
    variables=lambda url: {"AMP_URL": url, "AMP_API_KEY": "sgamp_sk-test"},
)
