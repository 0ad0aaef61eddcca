"""fleet of Evenflow."""
