"""What verbs can do to the world, one file per power."""
