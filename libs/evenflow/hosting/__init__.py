"""Putting services into processes: the registry of services and their composition for each profile."""
