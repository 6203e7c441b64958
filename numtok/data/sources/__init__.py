"""Public data sets for ``numtok fetch``, one source per file. Nothing here imports torch."""
