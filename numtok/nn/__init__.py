"""Models: a trunk, an embedder, heads, an objective. Only ``train`` and ``eval`` import torch."""
