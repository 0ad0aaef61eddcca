"""Soak: `evenflow dev` as a real process, under load and faults from outside, watched for what grows.

`make soak MINUTES=10` runs it. Memory, descriptors and lag are sampled; what is bounded is set so low that its bound is
reached in the warm-up, so that whatever still grows has none.
"""
