"""Texts to tokens and values, and back: schemes, what lies around numbers, shards. No torch."""
