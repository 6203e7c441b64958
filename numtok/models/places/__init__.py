"""Digit positions: the position of a token within its number, one file per method."""
