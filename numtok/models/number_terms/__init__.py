"""Number losses, which depend on the values of predicted tokens; one file each."""
