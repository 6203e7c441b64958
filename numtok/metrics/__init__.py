"""Metrics: pure functions of true values and predictions. Each has a file of its own, and none
imports torch."""
