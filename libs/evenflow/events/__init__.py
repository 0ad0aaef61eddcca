"""events of Evenflow."""
