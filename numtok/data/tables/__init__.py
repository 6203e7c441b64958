"""Tables: columns of numbers and categories, and the splits of their rows."""
