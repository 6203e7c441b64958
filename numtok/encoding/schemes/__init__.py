"""Number schemes, which define how numbers are written as tokens. Each has its own file, and none
uses torch."""
