"""What a use costs, and what a run would cost before it starts."""
