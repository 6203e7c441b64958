"""Version of numtok. Every artifact records it."""

__version__ = "0.1.0"
