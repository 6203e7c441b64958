"""What lies between embeddings and heads."""
