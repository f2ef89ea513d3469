"""The tables of schedules; a part of the migrations, so they never change."""

SCHEDULES = """
CREATE TABLE schedules (
    id TEXT PRIMARY KEY,
    project TEXT NOT NULL,
    name TEXT NOT NULL,
    body BLOB NOT NULL,
    due BIGINT,
    created_at TEXT NOT NULL,
    UNIQUE (project, name)
);
CREATE INDEX schedules_due ON schedules (due);
CREATE TABLE fires (
    schedule TEXT NOT NULL,
    due BIGINT NOT NULL,
    state TEXT NOT NULL,
    session TEXT,
    reason TEXT,
    PRIMARY KEY (schedule, due)
);
"""
SCHEDULES_POSTGRES = SCHEDULES.replace("BLOB", "BYTEA")
