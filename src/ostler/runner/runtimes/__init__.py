"""What an agent's processes run in: its home and variables, setup commands, containers."""
