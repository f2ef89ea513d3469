"""The log of a session: what is written, how it is read and followed."""
