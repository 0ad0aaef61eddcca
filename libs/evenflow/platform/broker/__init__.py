"""The log: bodies to records and back, publishing, following, subscribing, dead letters, transactions."""
