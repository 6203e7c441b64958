"""Training objectives: what a model receives as input for a row, and what it has to predict."""
