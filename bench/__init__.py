"""The benchmark: Ostler and its peer, measured in one run with the same agent and the same clients."""
