"""Logging agents in: what is stored, what tells whether it holds, and the agent's own login in a terminal."""
