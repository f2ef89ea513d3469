"""The tables of limits and of what was used; a part of the migrations, so they never change."""

LIMITS = """
CREATE TABLE limits (
    scope TEXT NOT NULL,
    id TEXT NOT NULL,
    requests_per_second DOUBLE PRECISION,
    live_sessions BIGINT,
    queued_tasks BIGINT,
    tokens_per_day BIGINT,
    cost_per_day DOUBLE PRECISION,
    PRIMARY KEY (scope, id)
);
CREATE TABLE turn_uses (
    session TEXT NOT NULL,
    turn BIGINT NOT NULL,
    project TEXT NOT NULL,
    actor TEXT NOT NULL,
    day TEXT NOT NULL,
    tokens BIGINT NOT NULL,
    cost DOUBLE PRECISION NOT NULL,
    PRIMARY KEY (session, turn)
);
CREATE INDEX turn_uses_by_day ON turn_uses (day, project);
"""

FILES = """
ALTER TABLE limits ADD COLUMN workspaces BIGINT;
ALTER TABLE limits ADD COLUMN upload_bytes_per_day BIGINT;
CREATE TABLE upload_uses (
    day TEXT NOT NULL,
    project TEXT NOT NULL,
    actor TEXT NOT NULL,
    bytes BIGINT NOT NULL,
    PRIMARY KEY (day, project, actor)
);
"""

# How many more requests of each may come, at all servers together, and when that was; only servers beside each other
# need it, and nothing is lost with it.
RATES = """
CREATE UNLOGGED TABLE rate_levels (
    scope TEXT NOT NULL,
    id TEXT NOT NULL,
    level DOUBLE PRECISION NOT NULL,
    at DOUBLE PRECISION NOT NULL,
    PRIMARY KEY (scope, id)
);
"""
