"""TLS: contexts made of files, and plain words for what goes wrong."""
