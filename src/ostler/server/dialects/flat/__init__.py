"""The flat taxonomy of the tasks API: status and log lines, for people who watch many sessions."""
