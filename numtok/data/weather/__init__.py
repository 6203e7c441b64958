"""Weather on grids: fields, and what public stores of them look like."""
