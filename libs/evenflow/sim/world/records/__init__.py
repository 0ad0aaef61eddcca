"""Records between senders, the log and its readers: faults on the way in, delays on the way out, the watcher."""
