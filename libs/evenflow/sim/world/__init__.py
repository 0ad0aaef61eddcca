"""The simulated world: the production services and agents on virtual time, over the embedded log, with faults."""
