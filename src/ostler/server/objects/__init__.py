"""Files that belong to the server: what clients sent."""
