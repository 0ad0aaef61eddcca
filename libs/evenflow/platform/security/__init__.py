"""security of Evenflow."""
