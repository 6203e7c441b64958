"""What a model learns from a row: what it sees, and what it must predict."""
