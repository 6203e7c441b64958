"""Number schemes: how a number is written as tokens. One file per scheme, no torch."""
