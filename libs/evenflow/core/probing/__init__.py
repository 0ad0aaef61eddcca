"""probing of Evenflow."""
