"""Commands that people start on this machine."""
