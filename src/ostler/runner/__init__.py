"""The runner: starts agents, feeds their frames to translators, stops whole process trees."""
