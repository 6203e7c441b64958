"""Compare the ways of putting numbers into a language model and getting them out again."""

__version__ = "0.1.0"
