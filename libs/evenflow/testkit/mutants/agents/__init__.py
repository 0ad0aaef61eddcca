"""Switches in the agent."""
