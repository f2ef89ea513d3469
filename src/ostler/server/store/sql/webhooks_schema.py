"""The tables of webhooks; a part of the migrations, so they never change."""

WEBHOOKS = """
CREATE TABLE project_webhooks (
    id TEXT PRIMARY KEY,
    project TEXT NOT NULL,
    body BLOB NOT NULL,
    position BIGINT NOT NULL,
    stopped TEXT,
    failing_since DOUBLE PRECISION,
    created_at TEXT NOT NULL
);
CREATE TABLE webhook_calls (
    id TEXT PRIMARY KEY,
    webhook_id TEXT NOT NULL,
    number BIGINT NOT NULL,
    chain TEXT,
    session TEXT,
    type TEXT NOT NULL,
    state TEXT NOT NULL,
    tries BIGINT NOT NULL,
    due DOUBLE PRECISION NOT NULL,
    until DOUBLE PRECISION NOT NULL,
    status BIGINT,
    reason TEXT,
    at DOUBLE PRECISION NOT NULL,
    body BLOB NOT NULL
);
CREATE INDEX webhook_calls_by_chain ON webhook_calls (webhook_id, state, chain, number);
CREATE INDEX webhook_calls_by_time ON webhook_calls (webhook_id, at);
"""
WEBHOOKS_POSTGRES = WEBHOOKS.replace("BLOB", "BYTEA")
