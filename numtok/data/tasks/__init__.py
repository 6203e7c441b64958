"""Tasks: generators of data, one per file. Nothing here imports torch."""
