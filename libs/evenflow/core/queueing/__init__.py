"""queueing of Evenflow."""
