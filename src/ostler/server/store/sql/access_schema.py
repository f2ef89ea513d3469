"""The tables of tenants, projects and API keys; a part of the migrations, so it never changes."""

ACCESS = """
CREATE TABLE tenants (name TEXT PRIMARY KEY, created_at TEXT NOT NULL);
CREATE TABLE projects (
    id TEXT PRIMARY KEY,
    tenant TEXT NOT NULL,
    name TEXT NOT NULL,
    created_at TEXT NOT NULL,
    UNIQUE (tenant, name)
);
CREATE TABLE api_keys (
    id TEXT PRIMARY KEY,
    hash TEXT NOT NULL UNIQUE,
    prefix TEXT NOT NULL,
    name TEXT NOT NULL,
    tenant TEXT NOT NULL,
    project TEXT,
    role TEXT NOT NULL,
    created_by TEXT NOT NULL,
    created_at TEXT NOT NULL,
    expires_at TEXT,
    last_used_at TEXT,
    revoked_at TEXT
);
"""
