"""The runners of this server and what they can run."""
