"""link probe of Evenflow."""
