"""Fleets: what leaders tell of their followers, and the ways between them."""
