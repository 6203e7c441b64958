"""What the ``tokenizer.json`` of another model makes of numbers, as merges of their characters."""

from collections.abc import Sequence
from typing import Any

from numtok.encoding.huggingface import panics
from numtok.encoding.schemes._literals import occurs

# Signs, points, exponents, and runs of many digits, which some tokenizers cut before they merge.
_PROBES = (
    *("7", "42", "-60.2", "1234", "0.1435", "2024", "1,234,567", "23%", "+5", ".5", "-0.25"),
    *("1e-05", "6.02E23", "100000", "99999999", "314159265358979", "-0.000123", "1.5e+300"),
)


def merges_of(settings: Any) -> str | None:
    """The merges that make parts of numerals, in their order, as ``BPE.merges`` has them; None
    where the file's content is no byte pair encoding."""
    try:
        model = settings["model"]
        if model["type"] != "BPE":
            return None
        return ";".join(" ".join(pair) for pair in _pairs(model) if occurs("".join(pair)))
    except (KeyError, TypeError):
        return None


def _pairs(model: dict[str, Any]) -> list[Sequence[str]]:
    """All merges; older files have them as strings."""
    return [pair.split(" ") if isinstance(pair, str) else pair for pair in model["merges"]]


def cuts_of(content: bytes) -> dict[str, list[str]]:
    """How the whole tokenizer cuts some numbers that stand alone."""
    from tokenizers import Tokenizer

    with panics():
        tokenizer = Tokenizer.from_str(content.decode())
        return {
            literal: tokenizer.encode(literal, add_special_tokens=False).tokens
            for literal in _PROBES
        }
