"""Switches in the ledger."""
