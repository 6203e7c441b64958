"""Predictive distributions: what every head says about a number, in raw units. numpy only."""
