"""Switches in what placement makes of submissions and receipts."""
