"""Digit positions: ways to index the digits of a number, one file each."""
