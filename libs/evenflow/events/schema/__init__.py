"""Published schemas of everything that travels, derived from the contracts and the strict doors."""
