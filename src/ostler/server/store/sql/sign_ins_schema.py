"""The table of people that signed in in browsers; a part of the migrations, so it never changes."""

SIGN_INS = """
CREATE TABLE sign_ins (
    id TEXT PRIMARY KEY,
    hash TEXT NOT NULL UNIQUE,
    way TEXT NOT NULL,
    mark TEXT NOT NULL,
    actor TEXT NOT NULL,
    name TEXT NOT NULL,
    grants TEXT NOT NULL,
    created_at TEXT NOT NULL,
    ends_at TEXT NOT NULL
);
"""

# The secret that was good before the one there is now; until when, once the one there is now was shown.
RENEWED = """
ALTER TABLE sign_ins ADD COLUMN former_hash TEXT;
ALTER TABLE sign_ins ADD COLUMN former_until TEXT;
ALTER TABLE sign_ins ADD COLUMN renewed_at TEXT;
"""
