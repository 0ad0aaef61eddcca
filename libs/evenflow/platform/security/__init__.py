"""Identities, signatures over exact bytes, session tags and join tokens."""
