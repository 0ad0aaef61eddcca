"""Where the embedded log keeps its records: in memory, or in one durable file."""
