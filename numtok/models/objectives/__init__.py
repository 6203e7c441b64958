"""Training objectives, which determine a model's input for a row and its prediction targets."""
