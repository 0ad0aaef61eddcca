"""What can be done to a world, by what it is done to."""
