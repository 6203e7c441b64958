"""How independent units of work get run."""
