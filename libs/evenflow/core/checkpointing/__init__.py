"""What a whole checkpoint consists of, and how a broken one is told."""
