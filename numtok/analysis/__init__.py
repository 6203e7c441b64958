"""A closer look at data, models and reports."""
