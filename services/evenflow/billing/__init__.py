"""Billing: metering turns ended attempts and transfers into usage, the ledger turns usage into chained charges."""
