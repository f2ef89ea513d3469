"""One file per agent: the row it has in the suite."""
