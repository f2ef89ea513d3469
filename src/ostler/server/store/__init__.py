"""The store: one SQLite database, one writer, many readers. The only place with SQL."""
