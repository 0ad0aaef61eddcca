"""What travels on the log: the envelope, one contract class per event type, the registry of streams, documents."""
