"""checkpointing of Evenflow."""
