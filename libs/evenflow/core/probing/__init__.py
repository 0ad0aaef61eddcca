"""From what is heard to what is believed: liveness, links, load frames, replay windows."""
