"""Sessions: pure state, the log and its feed, the live session, and the service the API calls."""
