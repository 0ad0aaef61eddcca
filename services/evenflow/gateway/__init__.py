"""gateway of Evenflow."""
