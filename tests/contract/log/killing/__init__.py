"""Programs that write to a file log and are killed at chosen points, and the check of what they leave behind."""
