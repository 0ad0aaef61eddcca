"""The decision: from a snapshot, queues and demands to a plan with its reasons."""
