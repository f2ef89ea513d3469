"""The Agent Client Protocol, version 1: every session as an ACP agent's session, for editors and other clients."""
