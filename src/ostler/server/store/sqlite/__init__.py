"""The store as one SQLite database: one writer, many readers. The only place with SQL."""
