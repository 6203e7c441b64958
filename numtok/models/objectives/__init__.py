"""Objectives: the input of a model for a row, and its targets."""
