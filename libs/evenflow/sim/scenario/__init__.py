"""The scenario format: its fields, the strict parser, exit codes and the catalogue of what is ready."""
