"""Tasks: sessions that are given a workspace and a prompt, and whose result is handed over."""
