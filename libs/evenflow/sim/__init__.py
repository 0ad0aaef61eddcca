"""The simulation: production services on virtual time, in a world whose faults a scenario or a seed decides."""
