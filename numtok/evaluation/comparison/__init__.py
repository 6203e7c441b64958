"""Several reports side by side: experiments, seeds, limits, published tables."""
