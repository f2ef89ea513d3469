"""Event streams: each client's place in a log, and how its bytes go out."""
