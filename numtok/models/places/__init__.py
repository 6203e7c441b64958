"""Places: where each token stands within its number; a file each, found by its name."""
