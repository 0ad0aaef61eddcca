"""Switches at the door and in the engine: what a task asks for, and whether it fits."""
