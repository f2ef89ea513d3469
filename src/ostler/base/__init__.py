"""Small things everything stands on: errors, ids, time, settings, logs."""
