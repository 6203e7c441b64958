"""The version of numtok."""

__version__ = "0.1.0"
