"""Metrics: pure functions of true values and predictions. One file per metric, no torch."""
