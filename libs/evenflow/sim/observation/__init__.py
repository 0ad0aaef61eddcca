"""What an outside observer knows: the fold of the log's records, by which expectations and invariants are judged."""
