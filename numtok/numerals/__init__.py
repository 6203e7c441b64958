"""Numbers in text: from bytes to spans, values and exactly rounded decimals."""
