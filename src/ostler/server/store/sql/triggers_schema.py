"""The tables of triggers; a part of the migrations, so they never change."""

TRIGGERS = """
CREATE TABLE triggers (
    id TEXT PRIMARY KEY,
    project TEXT NOT NULL,
    name TEXT NOT NULL,
    body BLOB NOT NULL,
    created_at TEXT NOT NULL,
    UNIQUE (project, name)
);
CREATE TABLE deliveries (
    id TEXT PRIMARY KEY,
    trigger_id TEXT NOT NULL,
    name TEXT NOT NULL,
    state TEXT NOT NULL,
    chain TEXT,
    session TEXT,
    reason TEXT,
    duplicates BIGINT NOT NULL,
    at DOUBLE PRECISION NOT NULL,
    body BLOB NOT NULL,
    UNIQUE (trigger_id, name)
);
CREATE INDEX deliveries_by_state ON deliveries (trigger_id, state, id);
CREATE INDEX deliveries_by_time ON deliveries (trigger_id, at);
"""
TRIGGERS_POSTGRES = TRIGGERS.replace("BLOB", "BYTEA")
