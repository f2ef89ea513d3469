"""Sessions: their log, the live session with its turns, asks and lifecycle, and the service the API calls."""
