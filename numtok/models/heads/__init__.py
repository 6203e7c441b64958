"""Heads: how a number is predicted from hidden states."""
