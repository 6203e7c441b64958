"""Trunks: the layers between embeddings, or columns, and heads."""
