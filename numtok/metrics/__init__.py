"""Metrics: pure functions of true values and predictions. Each metric has its own file, and none
imports torch."""
