"""How the agent reaches the gateway: over HTTP, or in the same process."""
