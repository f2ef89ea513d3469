"""Agents that ship with Ostler; each is a separate program."""
