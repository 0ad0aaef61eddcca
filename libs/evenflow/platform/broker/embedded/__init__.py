"""The log inside the process: Kafka's partitions, groups and transactions over lists or one SQLite file."""
