"""placement of Evenflow."""
