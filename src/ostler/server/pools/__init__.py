"""Runners that the server makes itself while sessions need them."""
