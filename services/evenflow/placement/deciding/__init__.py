"""The pure part of placement: rows it remembers, the model made of them, and what a round makes of its inputs."""
