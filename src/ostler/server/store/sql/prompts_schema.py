"""The table of saved prompts; a part of the migrations, so it never changes."""

PROMPTS = """
CREATE TABLE prompts (
    project TEXT NOT NULL,
    name TEXT NOT NULL,
    text TEXT NOT NULL,
    description TEXT,
    created_at TEXT NOT NULL,
    updated_at TEXT NOT NULL,
    PRIMARY KEY (project, name)
);
"""
