"""The edge that speaks MCP: the one place that knows the protocol's library. Imported by nobody at start-up."""
