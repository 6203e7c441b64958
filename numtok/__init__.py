"""Compare the ways of putting numbers into a language model and getting them out again."""

from numtok.version import __version__ as __version__
