"""Exploration: random worlds with faults from a seed, run on the production services until something does not hold."""
