"""The pure part of placement: what a round makes of its inputs. No I/O, no clock, no randomness."""
