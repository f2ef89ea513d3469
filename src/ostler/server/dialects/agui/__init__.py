"""AG-UI: a session as a thread, a turn as one or more runs, an ask as an interrupt."""
