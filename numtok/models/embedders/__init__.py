"""How a number goes in: tokens and their values to vectors."""
