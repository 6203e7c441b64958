"""Tasks that generate data, one per file. Nothing here imports torch."""
