"""Public benches: each returns one JSON object with its figure, the spread, and a floor measured in the same run."""
