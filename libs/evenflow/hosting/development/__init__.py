"""What `evenflow dev` adds to the services: three sites, simulated nodes, a gentle load."""
