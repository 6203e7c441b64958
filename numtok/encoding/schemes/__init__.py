"""Number schemes: how a number is written as tokens. Each has its own file, and none uses torch."""
