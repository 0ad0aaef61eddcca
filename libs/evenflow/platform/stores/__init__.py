"""Stores: views of the log behind three ports, each with several backends held to one behaviour suite."""
