"""Where in the repeated structure of the rows a number stands."""
