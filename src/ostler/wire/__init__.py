"""Wire types: every struct that crosses a process boundary, and nothing else."""
