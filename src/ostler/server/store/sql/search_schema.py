"""The index of all that was said in PostgreSQL (postgres/search.py); SQLite has it in a file of its own."""

SEARCH = """
CREATE TABLE said (
    id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    project TEXT NOT NULL,
    session TEXT NOT NULL,
    agent TEXT NOT NULL,
    first BIGINT NOT NULL,
    role TEXT NOT NULL,
    time TEXT NOT NULL,
    body TEXT NOT NULL,
    words TSVECTOR NOT NULL,
    UNIQUE (session, first)
);
CREATE INDEX said_words ON said USING gin (words);
INSERT INTO counters VALUES ('said', 0);
"""
