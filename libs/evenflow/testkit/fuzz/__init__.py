"""Fuzzing: generated records on every topic, generated requests at every door, and hostile quantities.

Everything follows from the product's own contracts: event bodies and documents from their JSON Schemas, requests from
the API's description. `make fuzz` runs it; the same seed gives the same records.
"""
