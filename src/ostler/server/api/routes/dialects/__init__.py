"""Routes of other protocols than our own."""
