"""Switches in what is believed of nodes."""
