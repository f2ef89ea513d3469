"""Workflow executions: a session as a durable execution with signals, state and a consolidated stream."""
