"""Faults of services, servers and stores under load, one after another, in a world of processes on real servers."""
