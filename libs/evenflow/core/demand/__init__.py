"""demand of Evenflow."""
