"""The table of people that came with tokens of a provider; a part of the migrations, so it never changes."""

PEOPLE = """
CREATE TABLE people (
    actor TEXT NOT NULL,
    tenant TEXT NOT NULL,
    project TEXT NOT NULL,
    role TEXT NOT NULL,
    name TEXT NOT NULL,
    first_seen_at TEXT NOT NULL,
    last_seen_at TEXT NOT NULL,
    PRIMARY KEY (actor, tenant, project)
);
"""
