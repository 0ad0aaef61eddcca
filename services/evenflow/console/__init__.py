"""Console: the one entrance. The HTTP API over a fold of every stream: what runs, what waits and why, what it cost."""
