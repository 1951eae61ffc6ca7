"""The bundle's MCP server: what agents call as tools, the same in every harness."""
