"""The universal daemon API: the same sessions with the paths, names and answers of its own specification."""
