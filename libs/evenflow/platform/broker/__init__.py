"""broker of Evenflow."""
