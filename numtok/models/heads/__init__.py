"""How a number comes out: hidden states to numbers."""
