"""A model as a function of its numbers."""
