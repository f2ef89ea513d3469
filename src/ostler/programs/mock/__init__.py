"""The mock agent."""
