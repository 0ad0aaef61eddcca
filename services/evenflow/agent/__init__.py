"""agent of Evenflow."""
