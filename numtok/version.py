"""The version of numtok, which every artifact records."""

__version__ = "0.1.0"
