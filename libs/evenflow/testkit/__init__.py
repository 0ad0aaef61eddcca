"""testkit of Evenflow."""
