"""Decisions as pure functions over plain values: no input, clock, chance or logging."""
