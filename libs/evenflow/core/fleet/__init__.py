"""The fleet as arrays: nodes and devices, what is free on them, links, datasets and hauls between sites."""
