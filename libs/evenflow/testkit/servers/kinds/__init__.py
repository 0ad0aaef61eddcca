"""The servers, a file each: how it is obtained, prepared, started and asked whether it is ready."""
