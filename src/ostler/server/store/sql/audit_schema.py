"""The tables of the audit log; a part of the migrations, so they never change."""

AUDIT = """
CREATE TABLE audit (
    tenant TEXT NOT NULL,
    number BIGINT NOT NULL,
    id TEXT NOT NULL UNIQUE,
    at TEXT NOT NULL,
    project TEXT NOT NULL,
    actor TEXT NOT NULL,
    action TEXT NOT NULL,
    outcome TEXT NOT NULL,
    status BIGINT NOT NULL,
    target TEXT NOT NULL,
    client TEXT NOT NULL,
    count BIGINT NOT NULL,
    previous TEXT NOT NULL,
    hash TEXT NOT NULL,
    PRIMARY KEY (tenant, number)
);
CREATE INDEX audit_by_actor ON audit (tenant, actor, number);
CREATE INDEX audit_by_action ON audit (tenant, action, number);
CREATE TABLE audit_heads (tenant TEXT PRIMARY KEY, number BIGINT NOT NULL, hash TEXT NOT NULL);
"""

# The last line that was removed because of its age, for each tenant.
REMOVED = """
CREATE TABLE audit_removed (tenant TEXT PRIMARY KEY, number BIGINT NOT NULL, hash TEXT NOT NULL);
CREATE INDEX audit_by_age ON audit (at);
"""
