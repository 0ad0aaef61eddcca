"""What every process stands on: broker, stores, security, observability, clock, settings."""
