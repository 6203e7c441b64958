"""Text between numbers: lossless tokenizers of bytes. One file a tokenizer, no torch."""
