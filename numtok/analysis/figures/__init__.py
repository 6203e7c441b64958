"""Figure kinds, one per file. Each file is named after its kind."""
