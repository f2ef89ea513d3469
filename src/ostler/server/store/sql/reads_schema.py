"""The table of what people have seen; a part of the migrations, so it never changes."""

READS = """
CREATE TABLE reads (
    actor TEXT NOT NULL,
    project TEXT NOT NULL,
    session TEXT NOT NULL,
    turns BIGINT NOT NULL,
    is_failed BOOLEAN NOT NULL,
    read_at TEXT NOT NULL,
    PRIMARY KEY (actor, project, session)
);
CREATE INDEX reads_by_session ON reads (session);
"""
