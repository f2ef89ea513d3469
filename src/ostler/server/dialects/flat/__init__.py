"""The flat taxonomy of the tasks API: status, log, moment and delivery, for people who watch many sessions."""
