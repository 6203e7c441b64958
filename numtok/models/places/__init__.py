"""Digit positions: ways to number the digits within a number, one file each."""
