"""Models: a trunk, an embedder, heads, an objective; and numbers out of them."""
