"""client of Evenflow."""
