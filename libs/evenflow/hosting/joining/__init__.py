"""A machine that joins as a node: its document, its way to the log, its operations door."""
