"""Number losses on the values of tokens, one file each."""
