"""Contract classes of event bodies, one file per owning service."""
