"""Embedders: ways to turn tokens and the values of numbers into vectors, one file each."""
