"""The tables of templates; a part of the migrations, so they never change."""

TEMPLATES = """
CREATE TABLE template_revisions (
    project TEXT NOT NULL,
    name TEXT NOT NULL,
    revision TEXT NOT NULL,
    about BLOB NOT NULL,
    content BLOB NOT NULL,
    created_at TEXT NOT NULL,
    PRIMARY KEY (project, name, revision)
);
CREATE TABLE template_tags (
    project TEXT NOT NULL,
    name TEXT NOT NULL,
    tag TEXT NOT NULL,
    revision TEXT NOT NULL,
    PRIMARY KEY (project, name, tag)
);
"""
TEMPLATES_POSTGRES = TEMPLATES.replace("BLOB", "BYTEA")
