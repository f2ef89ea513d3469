"""Webhooks: what happens in a project is told to addresses of others, signed, in order and at least once."""
