"""Tools of MCP servers: the agent's side of them, and the helper process that speaks with the servers."""
