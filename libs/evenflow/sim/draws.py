"""Chance by name: the same name gives the same draw, whoever asks and in whatever order.

A delay drawn from a shared generator would depend on who asked before; drawn by the record's place it does not.
"""

from __future__ import annotations

import hashlib
from typing import Final

_MASK: Final = (1 << 64) - 1


def splitmix64(state: int) -> int:
    """One step of splitmix64 (Steele, Lea, Flood 2014): 64 bits in, 64 well mixed bits out."""
    z = (state + 0x9E3779B97F4A7C15) & _MASK
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & _MASK
    return z ^ (z >> 31)


def bits(seed: int, name: str) -> int:
    """64 bits for a name under a seed."""
    digest = hashlib.blake2b(name.encode(), digest_size=8).digest()
    return splitmix64((seed & _MASK) ^ int.from_bytes(digest, "big"))


def fraction(seed: int, name: str) -> float:
    """A number in [0, 1) for a name under a seed."""
    return (bits(seed, name) >> 11) / (1 << 53)


def between(seed: int, name: str, low: int, high: int) -> int:
    """A whole number from `low` to `high`, both included."""
    return low + bits(seed, name) % (high - low + 1)
