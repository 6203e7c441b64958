"""What the numbers of data are like, slot by slot, and what each scheme loses on them."""
