"""What a source has, brought here: files, texts and fields."""
