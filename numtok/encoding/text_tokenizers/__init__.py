"""Text tokenizers: lossless byte tokenizers for the text between numbers. One file per tokenizer,
no torch."""
