"""Text tokenizers: lossless byte tokenizers for the text between numbers. Each has its own file,
and none uses torch."""
