"""Checkpoint: verifies saved progress, says which of it may be resumed from, prunes the rest."""
