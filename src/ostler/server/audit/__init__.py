"""Who did what, and who was refused, in a log that is only added to."""
