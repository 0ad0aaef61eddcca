"""Switches between memory and log: fences, offsets, images, dead letters, expiry."""
