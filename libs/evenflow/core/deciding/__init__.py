"""Rules of a task's life as plain functions: what a failure costs, when it is tried again."""
