"""From rows to a model: steps, checkpoints, curricula, and the files of a model."""
