"""pricing of Evenflow."""
