"""What a process tells those who keep it running: whether it lives, whether it serves, and its figures."""
