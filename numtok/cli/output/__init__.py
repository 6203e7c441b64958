"""How what commands find and make is printed."""
