"""cli of Evenflow."""
