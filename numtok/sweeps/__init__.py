"""Sweeps: grids of experiments. A sweep drives the stages, so it stands above them."""
