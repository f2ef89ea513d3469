"""Durable work around sessions."""
