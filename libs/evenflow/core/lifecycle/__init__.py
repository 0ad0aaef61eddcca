"""lifecycle of Evenflow."""
