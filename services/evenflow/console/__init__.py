"""console of Evenflow."""
