"""Kinds of figures: each file is one, named after the kind."""
