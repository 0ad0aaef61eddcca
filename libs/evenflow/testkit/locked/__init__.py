"""Servers behind locked doors on loopback: TLS of a CA of their own, users, and what each user may do."""
