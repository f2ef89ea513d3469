"""Programs between an agent that does not speak over its pipes and its keeper."""
