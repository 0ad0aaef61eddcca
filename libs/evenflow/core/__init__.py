"""core of Evenflow."""
