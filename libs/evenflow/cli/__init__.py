"""The `evenflow` command: a file per subcommand, one way to print, one list of exit codes."""
