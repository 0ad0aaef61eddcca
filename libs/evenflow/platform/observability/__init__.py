"""Structured logs, trace context and metrics; all deterministic under simulation, tracing and metrics off by default."""
