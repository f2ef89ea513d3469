"""The schema of every SQL store, as one list of numbered migrations; a number is never changed once released."""

from typing import NamedTuple

from ostler.server.store.sql.access_schema import ACCESS
from ostler.server.store.sql.audit_schema import AUDIT, REMOVED
from ostler.server.store.sql.limits_schema import FILES, LIMITS, RATES
from ostler.server.store.sql.people_schema import PEOPLE
from ostler.server.store.sql.prompts_schema import PROMPTS
from ostler.server.store.sql.reads_schema import READS
from ostler.server.store.sql.schedules_schema import SCHEDULES, SCHEDULES_POSTGRES
from ostler.server.store.sql.search_schema import SEARCH
from ostler.server.store.sql.sign_ins_schema import RENEWED, SIGN_INS
from ostler.server.store.sql.templates_schema import TEMPLATES, TEMPLATES_POSTGRES
from ostler.server.store.sql.triggers_schema import TRIGGERS, TRIGGERS_POSTGRES
from ostler.server.store.sql.webhooks_schema import WEBHOOKS, WEBHOOKS_POSTGRES

_SESSIONS = """
CREATE TABLE sessions (
    id TEXT PRIMARY KEY,
    project TEXT NOT NULL,
    key TEXT NOT NULL,
    agent TEXT NOT NULL,
    status TEXT NOT NULL,
    title TEXT,
    labels TEXT NOT NULL,
    created_at TEXT NOT NULL,
    updated_at TEXT NOT NULL,
    spec BLOB NOT NULL,
    state BLOB NOT NULL,
    UNIQUE (project, key)
);
CREATE INDEX sessions_by_status ON sessions (project, status, id);
CREATE TABLE deleted_sessions (id TEXT PRIMARY KEY, project TEXT NOT NULL, key TEXT NOT NULL, deleted_at TEXT NOT NULL);
"""

# A chunk is a burst of events of one session, packed JSON lines: one row instead of many is 2 to 4 times faster.
# `position` counts the events of all sessions and is the cursor of the project-wide stream.
_EVENTS = """
CREATE TABLE chunks (
    position INTEGER PRIMARY KEY,
    session TEXT NOT NULL,
    first INTEGER NOT NULL,
    last INTEGER NOT NULL,
    body BLOB NOT NULL,
    raw BLOB
);
CREATE UNIQUE INDEX chunks_by_session ON chunks (session, last);
CREATE TABLE counters (name TEXT PRIMARY KEY, value INTEGER NOT NULL);
INSERT INTO counters VALUES ('position', 0);
"""

_PROJECTIONS = """
CREATE TABLE turns (
    session TEXT NOT NULL,
    number INTEGER NOT NULL,
    turn BLOB NOT NULL,
    PRIMARY KEY (session, number)
) WITHOUT ROWID;
CREATE TABLE asks (
    session TEXT NOT NULL,
    ask_id TEXT NOT NULL,
    is_open INTEGER NOT NULL,
    requested_at TEXT NOT NULL,
    ask BLOB NOT NULL,
    PRIMARY KEY (session, ask_id)
) WITHOUT ROWID;
CREATE INDEX asks_open ON asks (requested_at) WHERE is_open;
"""

_IDEMPOTENCY = """
CREATE TABLE idempotency (
    scope TEXT NOT NULL,
    key TEXT NOT NULL,
    fingerprint TEXT NOT NULL,
    status INTEGER NOT NULL,
    headers BLOB NOT NULL,
    body BLOB NOT NULL,
    created REAL NOT NULL,
    PRIMARY KEY (scope, key)
) WITHOUT ROWID;
CREATE INDEX idempotency_age ON idempotency (created);
"""

# How far the agent's process had come when a chunk was written: a restarted server goes on behind it.
_PROGRESS = """
ALTER TABLE chunks ADD COLUMN start INTEGER;
ALTER TABLE chunks ADD COLUMN step INTEGER;
"""

# Which workspace a session has, so that those that nobody has any more can be found; and what was kept of it.
_WORKSPACES = """
ALTER TABLE sessions ADD COLUMN workspace TEXT;
CREATE TABLE snapshots (
    session TEXT NOT NULL,
    sequence INTEGER NOT NULL,
    snapshot BLOB NOT NULL,
    PRIMARY KEY (session, sequence)
) WITHOUT ROWID;
"""

# A row for each webhook of a task until it was called: whoever finds one of a session that is over calls it.
_WEBHOOKS = """
CREATE TABLE webhooks (session TEXT NOT NULL, number INTEGER NOT NULL, PRIMARY KEY (session, number)) WITHOUT ROWID;
"""

# See outline.py: which events lie beside the log too.
_OUTLINE = """
CREATE TABLE items (
    session TEXT NOT NULL,
    first INTEGER NOT NULL,
    last INTEGER NOT NULL,
    number INTEGER,
    item_id TEXT NOT NULL,
    kind TEXT NOT NULL,
    is_open INTEGER NOT NULL,
    turn_id TEXT,
    body BLOB NOT NULL,
    PRIMARY KEY (session, first)
) WITHOUT ROWID;
CREATE UNIQUE INDEX items_by_number ON items (session, number);
CREATE INDEX items_by_id ON items (session, item_id);
CREATE INDEX items_by_last ON items (session, last);
CREATE INDEX items_said ON items (session, last) WHERE kind = 'message' AND number IS NOT NULL;
CREATE TABLE lines (
    session TEXT NOT NULL,
    sequence INTEGER NOT NULL,
    body BLOB NOT NULL,
    PRIMARY KEY (session, sequence)
) WITHOUT ROWID;
CREATE TABLE artifacts (
    session TEXT NOT NULL,
    sequence INTEGER NOT NULL,
    path TEXT NOT NULL,
    is_newest INTEGER NOT NULL,
    body BLOB NOT NULL,
    PRIMARY KEY (session, sequence)
) WITHOUT ROWID;
CREATE INDEX artifacts_by_path ON artifacts (session, path, sequence);
CREATE INDEX artifacts_newest ON artifacts (session, sequence) WHERE is_newest;
CREATE INDEX turns_by_place ON turns (session, json_extract(CAST(turn AS TEXT), '$.first_sequence'));
CREATE INDEX turns_by_id ON turns (session, json_extract(CAST(turn AS TEXT), '$.turn_id'));
CREATE INDEX turns_branching ON turns (session, number) WHERE json_extract(CAST(turn AS TEXT), '$.after') IS NOT NULL;
"""

# How the lines of a chunk are packed (packing.py): none in rows of earlier versions, which stay as they are.
_PACKING = "ALTER TABLE chunks ADD COLUMN packing INTEGER;"

# Who has a session, in rows of their own: a server claims all at its start, and their states need not be written anew.
_OWNERS = """
CREATE TABLE owners (session TEXT PRIMARY KEY, owner TEXT NOT NULL, epoch INTEGER NOT NULL) WITHOUT ROWID;
INSERT INTO owners SELECT id, '', 0 FROM sessions;
INSERT INTO counters VALUES ('epoch', 0);
"""

# Durable work: a row until it is done. Webhooks that nobody called yet become such work; those of sessions that are not
# over need no row before their end.
_JOBS = """
CREATE TABLE jobs (
    key TEXT PRIMARY KEY,
    kind TEXT NOT NULL,
    body BLOB NOT NULL,
    due REAL NOT NULL,
    since REAL NOT NULL,
    tries INTEGER NOT NULL,
    owner TEXT NOT NULL,
    until REAL NOT NULL
) WITHOUT ROWID;
INSERT INTO jobs SELECT
    'webhook-' || id || '-' || number, 'webhook',
    CAST(json_object('project', project, 'session', id) AS BLOB),
    0, CAST(strftime('%s', 'now') AS REAL), 0, '', 0
FROM webhooks JOIN sessions ON id = session WHERE status IN ('stopped', 'completed', 'failed', 'cancelled');
DROP TABLE webhooks;
"""
_JOBS_POSTGRES = """
CREATE TABLE jobs (
    key TEXT PRIMARY KEY,
    kind TEXT NOT NULL,
    body BYTEA NOT NULL,
    due DOUBLE PRECISION NOT NULL,
    since DOUBLE PRECISION NOT NULL,
    tries BIGINT NOT NULL,
    owner TEXT NOT NULL,
    until DOUBLE PRECISION NOT NULL
);
INSERT INTO jobs SELECT
    'webhook-' || id || '-' || number, 'webhook',
    convert_to(json_build_object('project', project, 'session', id)::text, 'UTF8'),
    0, extract(epoch FROM clock_timestamp()), 0, '', 0
FROM webhooks JOIN sessions ON id = session WHERE status IN ('stopped', 'completed', 'failed', 'cancelled');
DROP TABLE webhooks;
"""

# Which runner a session is on; none while it waits for one. What was made before is on the runner of its server.
_RUNNERS = """
ALTER TABLE sessions ADD COLUMN runner TEXT DEFAULT 'local';
CREATE INDEX sessions_by_runner ON sessions (runner, status);
"""

# PostgreSQL begins with the seventh: what six migrations made of the first, and columns for what SQLite takes out of
# JSON. A position is the number of a transaction and the place of an event in it (postgres/dialect.py): there is no
# counter that every append would have to wait for.
_POSTGRES = """
CREATE TABLE sessions (
    id TEXT COLLATE "C" PRIMARY KEY,
    project TEXT NOT NULL,
    key TEXT COLLATE "C" NOT NULL,
    agent TEXT NOT NULL,
    status TEXT NOT NULL,
    title TEXT,
    labels JSONB NOT NULL,
    created_at TEXT NOT NULL,
    updated_at TEXT NOT NULL,
    spec BYTEA NOT NULL,
    state BYTEA NOT NULL,
    workspace TEXT,
    is_task BOOLEAN NOT NULL,
    task_project TEXT,
    task_tenant TEXT,
    UNIQUE (project, key)
);
CREATE INDEX sessions_by_status ON sessions (project, status, id);
CREATE INDEX sessions_by_label ON sessions USING gin (labels jsonb_path_ops);
CREATE TABLE deleted_sessions (id TEXT PRIMARY KEY, project TEXT NOT NULL, key TEXT NOT NULL, deleted_at TEXT NOT NULL);
CREATE TABLE owners (session TEXT PRIMARY KEY, owner TEXT NOT NULL, epoch BIGINT NOT NULL);
CREATE SEQUENCE epochs;
CREATE TABLE chunks (
    position BIGINT PRIMARY KEY,
    session TEXT NOT NULL,
    first BIGINT NOT NULL,
    last BIGINT NOT NULL,
    body BYTEA NOT NULL,
    raw BYTEA,
    start BIGINT,
    step BIGINT,
    packing SMALLINT
);
CREATE UNIQUE INDEX chunks_by_session ON chunks (session, last);
CREATE UNIQUE INDEX chunks_by_first ON chunks (session, first);
CREATE TABLE counters (name TEXT PRIMARY KEY, value BIGINT NOT NULL);
INSERT INTO counters VALUES ('transactions', 0);
CREATE TABLE turns (
    session TEXT NOT NULL,
    number BIGINT NOT NULL,
    turn BYTEA NOT NULL,
    turn_id TEXT NOT NULL,
    first_sequence BIGINT NOT NULL,
    branches BOOLEAN NOT NULL,
    PRIMARY KEY (session, number)
);
CREATE INDEX turns_by_place ON turns (session, first_sequence);
CREATE INDEX turns_by_id ON turns (session, turn_id);
CREATE INDEX turns_branching ON turns (session, number) WHERE branches;
CREATE TABLE asks (
    session TEXT NOT NULL,
    ask_id TEXT NOT NULL,
    is_open BOOLEAN NOT NULL,
    requested_at TEXT NOT NULL,
    ask BYTEA NOT NULL,
    PRIMARY KEY (session, ask_id)
);
CREATE INDEX asks_open ON asks (requested_at) WHERE is_open;
CREATE TABLE snapshots (
    session TEXT NOT NULL,
    sequence BIGINT NOT NULL,
    snapshot BYTEA NOT NULL,
    PRIMARY KEY (session, sequence)
);
CREATE TABLE webhooks (session TEXT NOT NULL, number BIGINT NOT NULL, PRIMARY KEY (session, number));
CREATE TABLE items (
    session TEXT NOT NULL,
    first BIGINT NOT NULL,
    last BIGINT NOT NULL,
    number BIGINT,
    item_id TEXT NOT NULL,
    kind TEXT NOT NULL,
    is_open BOOLEAN NOT NULL,
    turn_id TEXT,
    body BYTEA NOT NULL,
    PRIMARY KEY (session, first)
);
CREATE UNIQUE INDEX items_by_number ON items (session, number);
CREATE UNIQUE INDEX items_by_id ON items (session, item_id) WHERE number IS NOT NULL;
CREATE INDEX items_by_last ON items (session, last);
CREATE INDEX items_said ON items (session, last) WHERE kind = 'message' AND number IS NOT NULL;
CREATE TABLE lines (
    session TEXT NOT NULL,
    sequence BIGINT NOT NULL,
    body BYTEA NOT NULL,
    PRIMARY KEY (session, sequence)
);
CREATE TABLE artifacts (
    session TEXT NOT NULL,
    sequence BIGINT NOT NULL,
    path TEXT NOT NULL,
    is_newest BOOLEAN NOT NULL,
    body BYTEA NOT NULL,
    PRIMARY KEY (session, sequence)
);
CREATE INDEX artifacts_by_path ON artifacts (session, path, sequence);
CREATE INDEX artifacts_newest ON artifacts (session, sequence) WHERE is_newest;
CREATE TABLE idempotency (
    scope TEXT NOT NULL,
    key TEXT NOT NULL,
    fingerprint TEXT NOT NULL,
    status BIGINT NOT NULL,
    headers BYTEA NOT NULL,
    body BYTEA NOT NULL,
    created DOUBLE PRECISION NOT NULL,
    PRIMARY KEY (scope, key)
);
CREATE INDEX idempotency_age ON idempotency (created);
"""

# Runners that may dial in, and what more of them can register with: known by hashes of what they show.
_RUNNER_KEYS = """
CREATE TABLE runner_tokens (
    id TEXT PRIMARY KEY,
    hash TEXT NOT NULL UNIQUE,
    fixed_labels TEXT NOT NULL,
    uses BIGINT,
    expires_at TEXT,
    created_at TEXT NOT NULL
);
CREATE TABLE runner_keys (
    runner TEXT PRIMARY KEY,
    hash TEXT NOT NULL UNIQUE,
    name TEXT NOT NULL,
    fixed_labels TEXT NOT NULL,
    created_at TEXT NOT NULL,
    revoked_at TEXT,
    is_draining BOOLEAN NOT NULL,
    token TEXT NOT NULL
);
"""

# Servers of one database, whose beats they count themselves, and what all of them share.
_SERVERS = """
CREATE TABLE servers (
    id TEXT PRIMARY KEY,
    address TEXT NOT NULL,
    version TEXT NOT NULL,
    beat BIGINT NOT NULL,
    is_here BOOLEAN NOT NULL
);
CREATE TABLE shared (name TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE INDEX owners_by_owner ON owners (owner);
"""

# Runners that servers make themselves: a row before anything is made, and until nothing of it is there.
_MANAGED_RUNNERS = """
CREATE TABLE managed_runners (
    id TEXT PRIMARY KEY,
    pool TEXT NOT NULL,
    server TEXT NOT NULL,
    runner TEXT,
    state TEXT NOT NULL,
    created_at TEXT NOT NULL
);
"""

# Until when turns may go on on a runner that drains.
_DRAINS = "ALTER TABLE runner_keys ADD COLUMN drain_until TEXT;"
# Where runners reach a server, if it says so.
_NAMED_SERVERS = "ALTER TABLE servers ADD COLUMN for_runners TEXT;"

# Which server holds the link to which runner; the number only grows, and who has a lower one has it no longer.
_LINKS = """
CREATE TABLE runner_links (
    runner TEXT PRIMARY KEY,
    server TEXT NOT NULL,
    number BIGINT NOT NULL,
    is_linked BOOLEAN NOT NULL,
    beat BIGINT NOT NULL,
    heard_at TEXT NOT NULL,
    about BYTEA NOT NULL,
    load BYTEA NOT NULL
);
CREATE INDEX sessions_waiting ON sessions (id) WHERE runner IS NULL;
"""


class Migration(NamedTuple):
    """One step of the schema, as each database is told it; an empty one has nothing to do there."""

    sqlite: str
    postgres: str = ""


MIGRATIONS: tuple[Migration, ...] = (
    Migration(_SESSIONS + _EVENTS + _PROJECTIONS + _IDEMPOTENCY),
    Migration(_PROGRESS),
    Migration(_WORKSPACES),
    Migration(_WEBHOOKS),
    Migration(_OUTLINE),
    Migration(_PACKING),
    Migration(_OWNERS, _POSTGRES),
    Migration(_RUNNER_KEYS, _RUNNER_KEYS),
    Migration(_JOBS, _JOBS_POSTGRES),
    Migration("", _SERVERS),
    Migration(_RUNNERS, _RUNNERS),
    Migration(_MANAGED_RUNNERS, _MANAGED_RUNNERS + _LINKS),
    Migration(_DRAINS, _DRAINS + _NAMED_SERVERS + SEARCH),
    Migration(PROMPTS, PROMPTS),
    Migration(ACCESS, ACCESS),
    Migration(TEMPLATES, TEMPLATES_POSTGRES),
    Migration(SCHEDULES, SCHEDULES_POSTGRES),
    Migration(TRIGGERS, TRIGGERS_POSTGRES),
    Migration(LIMITS, LIMITS),
    Migration(WEBHOOKS, WEBHOOKS_POSTGRES),
    Migration(AUDIT + PEOPLE, AUDIT + PEOPLE),
    Migration(FILES + REMOVED, FILES + REMOVED),
    Migration(READS, READS),
    Migration(SIGN_INS, SIGN_INS),
    Migration(RENEWED, RENEWED + RATES),
)
SCHEMA_VERSION = len(MIGRATIONS)
OUTLINE_VERSION = 5
"""The first version with an outline."""
