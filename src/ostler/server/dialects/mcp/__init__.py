"""The server as an MCP server: tools with which one agent can give work to others."""
