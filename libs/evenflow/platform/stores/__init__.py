"""stores of Evenflow."""
