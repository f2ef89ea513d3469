"""The commands, a file per noun."""
