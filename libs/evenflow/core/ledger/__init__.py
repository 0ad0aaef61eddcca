"""ledger of Evenflow."""
