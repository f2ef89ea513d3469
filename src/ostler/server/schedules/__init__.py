"""Schedules: when tasks begin by the clock, and how each time begins one task and no more."""
