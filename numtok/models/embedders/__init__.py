"""Embedders: how tokens and their values become vectors."""
