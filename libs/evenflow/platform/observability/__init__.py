"""observability of Evenflow."""
