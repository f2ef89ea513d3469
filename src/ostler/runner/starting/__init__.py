"""How the programs of others are started: one door, and the ways to hold their processes."""
