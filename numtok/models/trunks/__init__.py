"""What lies between embeddings, or columns, and heads."""
