"""Who may ask for what: the table of rights, tokens, and the record of what was refused."""
