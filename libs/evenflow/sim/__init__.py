"""sim of Evenflow."""
