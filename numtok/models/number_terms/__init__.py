"""Number losses: what an objective learns of the values of tokens; a file each."""
