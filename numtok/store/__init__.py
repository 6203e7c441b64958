"""Artifacts, complete or absent, and where independent work runs."""
