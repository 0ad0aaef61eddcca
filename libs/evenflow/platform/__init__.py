"""platform of Evenflow."""
