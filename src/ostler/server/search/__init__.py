"""Search in everything that was said: an index that follows the logs, and what people ask of it."""
