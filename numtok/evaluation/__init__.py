"""What a model says of rows, beside what needs no model, as a report."""
