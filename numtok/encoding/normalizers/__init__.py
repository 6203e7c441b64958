"""Normalizers: mappings of values to a range that suits a scheme, and back. Each has its own file,
and none uses torch."""
