"""Number schemes: how a number is written as tokens. One file a scheme, no torch."""
