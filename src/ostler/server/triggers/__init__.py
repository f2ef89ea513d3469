"""Triggers: events from outside that become tasks or prompts."""
