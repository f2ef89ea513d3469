"""Routes by group; a handler only translates."""
