"""The seam between the server, which remembers, and a runner, which runs agents."""
