"""The console's HTTP API: one file per part of it."""
