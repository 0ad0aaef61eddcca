"""What a task asks for, exact and with defaults filled in."""
