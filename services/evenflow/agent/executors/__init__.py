"""Ways of running members: simulated ones and real processes."""
