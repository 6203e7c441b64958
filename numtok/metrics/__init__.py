"""Metrics: pure functions of truth and prediction. One file each, no torch."""
