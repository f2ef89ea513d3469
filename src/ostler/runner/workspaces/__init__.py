"""Workspaces: isolated file trees, their snapshots and their files. The way in is `service.Workspaces`."""
