"""For tests: a pool of services on virtual time, builders, mutants."""
