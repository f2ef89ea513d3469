"""Ostler's own agent: a process that calls models and runs tools; its lines are those of `wire/own_agent.py`."""
