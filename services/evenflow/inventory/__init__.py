"""inventory of Evenflow."""
