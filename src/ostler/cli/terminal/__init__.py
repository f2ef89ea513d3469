"""A session shown in a terminal, and a person answered there."""
