"""What handlers work with."""

import msgspec

from ostler.base.clock import Clock, Histogram, ObjectNumbers
from ostler.base.rendezvous import Rendezvous
from ostler.base.settings import Settings
from ostler.base.tasks import Background
from ostler.server.api.edge.stream_limit import OpenStreams
from ostler.server.audit.log import AuditLog
from ostler.server.auth.directory import Directory
from ostler.server.auth.session_tokens import SessionTokens
from ostler.server.auth.sign_ins import People, SignIns
from ostler.server.engine.protocol import Engine
from ostler.server.fleets.ingest import Ingest
from ostler.server.fleets.relay import Relay
from ostler.server.quotas.service import Quotas
from ostler.server.runners.links import RunnerLinks
from ostler.server.runners.placement import default_agent, default_agent_hint
from ostler.server.runners.registry import Runners
from ostler.server.schedules.service import Schedules
from ostler.server.search.service import Search
from ostler.server.sessions.runners.lost_runners import LostRunners
from ostler.server.sessions.service import Sessions
from ostler.server.store.peers import Peers
from ostler.server.tasks.pull_request_looks import PullRequestLooks
from ostler.server.tasks.stored_files import StoredFiles
from ostler.server.tasks.uploads import Uploads
from ostler.server.triggers.service import Triggers
from ostler.server.webhooks.service import Webhooks
from ostler.wire.fleets import InventoryHost

_CLASSES = (0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.5, 1.0, 5.0)


class Services(msgspec.Struct, frozen=True, kw_only=True):
    """The parts of a running server, given to every handler."""

    settings: Settings
    sessions: Sessions
    runners: Runners
    links: RunnerLinks
    lost_runners: LostRunners
    uploads: Uploads
    stored_files: StoredFiles
    pull_requests: PullRequestLooks
    search: Search
    ingest: Ingest = msgspec.field(default_factory=Ingest)
    relay: Relay = msgspec.field(default_factory=Relay)
    rendezvous: Rendezvous = msgspec.field(default_factory=Rendezvous)
    inventory: tuple[InventoryHost, ...]
    """The followers that are configured."""
    schedules: Schedules
    triggers: Triggers
    webhooks: Webhooks
    engine: Engine
    directory: Directory
    session_tokens: SessionTokens
    people: People
    audit: AuditLog
    quotas: Quotas
    clock: Clock
    counters: "Counters"
    peers: Peers | None = None
    """The other servers of the same store, if there can be any."""
    background: Background
    """What requests began and nobody waits for."""

    @property
    def sign_ins(self) -> SignIns | None:
        """Those who sign in in their browser."""
        return self.people.sign_ins

    @property
    def default_agent(self) -> str:
        """The agent of who names none."""
        return default_agent(self.runners, self.settings.default_agent)

    @property
    def default_agent_hint(self) -> str:
        """What to do so that it is no mock."""
        return default_agent_hint(self.runners, self.settings.default_agent)


class Counters(msgspec.Struct, kw_only=True):
    """Numbers that only grow or say what is going on now."""

    requests: int = 0
    relayed: int = 0
    relays_failed: int = 0
    relay_times: Histogram = msgspec.field(default_factory=lambda: Histogram(_CLASSES))
    """Until the answer of the other server begins."""
    streams: OpenStreams
    objects: ObjectNumbers = msgspec.field(default_factory=ObjectNumbers)
    stopping: bool = False
