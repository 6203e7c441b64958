"""Kinds of figures: each file is one, and its name is the name of the kind."""
