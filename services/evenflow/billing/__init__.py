"""billing of Evenflow."""
