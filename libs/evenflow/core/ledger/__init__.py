"""The hash chain of a queue's ledger."""
