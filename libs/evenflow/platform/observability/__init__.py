"""Structured logs, trace context and metrics; deterministic under simulation, tracing and metrics off by default."""
