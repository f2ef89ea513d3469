"""What a store refuses; callers know what it means for a client."""


class Refused(Exception):
    """Something was not written, and nothing else was harmed by it."""


class KeyTaken(Refused):
    """Another session of the project has the key."""
