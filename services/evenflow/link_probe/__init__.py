"""Link-probe: asks nodes to measure links and keeps the estimate of every directed link."""
