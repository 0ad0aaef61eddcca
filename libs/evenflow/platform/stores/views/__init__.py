"""Collections that hold what stands elsewhere: written as it changes, and again when the store lost it."""
