"""The console's tables: pure folds of other services' facts, rebuilt from the log at every start."""
