"""Placement: the one decider of a pool. Takes submissions and receipts, decides in rounds, one transaction each."""
