"""Normalizers: mappings of values to a range that suits a scheme, and back. One file each, no
torch."""
