"""Heads: ways to predict a number from hidden states, one file each."""
