"""mapping of Evenflow."""
