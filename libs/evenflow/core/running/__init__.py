"""What a node does with its members: pure decisions of the agent."""
