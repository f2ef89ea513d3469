"""The suite that holds agents to what they say they can: it ships, so that anybody can run it on any agent."""
