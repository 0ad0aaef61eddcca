"""Inventory: which nodes and datasets there are, what state they are in, and their live load."""
