"""Tasks: makers of data, one file each, no torch."""
