"""Gateway: the agents' door. Sessions, desired state, records, objects; nothing unsigned gets in."""
