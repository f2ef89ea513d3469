"""Templates: folders that define agents, stored as they are, and used to start sessions and tasks."""
