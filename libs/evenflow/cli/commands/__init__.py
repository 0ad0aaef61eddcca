"""The commands, one file each. Heavy libraries are loaded inside the functions that need them."""
