"""Durable work carried by Temporal."""
