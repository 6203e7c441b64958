"""Number losses, which depend on the values of predicted tokens. Each file contains one loss."""
