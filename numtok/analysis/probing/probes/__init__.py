"""Ways to look at a model: each file is a probe, and its name is the name of the probe."""
