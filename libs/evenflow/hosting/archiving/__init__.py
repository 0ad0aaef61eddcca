"""The archive of a log that expires by itself."""
