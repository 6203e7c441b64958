"""Kinds of figures. Each file defines one kind and is named after it."""
