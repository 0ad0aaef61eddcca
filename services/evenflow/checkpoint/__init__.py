"""checkpoint of Evenflow."""
