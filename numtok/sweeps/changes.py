"""A sweep's file as it is parsed, and the changes that a command line makes to it (``--set``)."""

import re
from typing import Any

from numtok import documents
from numtok.errors import UsageError
from numtok.settings.train import BUDGETS


def parsed(content: bytes, shown: str) -> dict[str, Any]:
    """Numbers with a point stay as they are written: 1.00 has two decimals."""
    return documents.toml(content, shown, str)


def change_value(tables: dict[str, Any], change: str) -> None:
    """Set one value of a file; what is nothing else there, as a word or 1..4, needs no quotes. A
    budget takes the place of another."""
    match = re.fullmatch(r"\s*(?:([a-z]+)\.)?([a-z-]+)\s*=(.*)", change, re.DOTALL)
    try:
        if match is None:
            raise ValueError
        table, key, text = match.groups()
        value = _value(text.strip())
        place = tables if table is None else tables.setdefault(table, {})
        place[key] = value
    except (TypeError, ValueError, UsageError):
        raise UsageError(
            f"--set {change!r} is not understood; write TABLE.KEY=VALUE with the value as in the "
            "file, such as train.steps=2000 or 'train.seed=[0, 1]'"
        ) from None
    for other in BUDGETS if table == "train" and key in BUDGETS else ():
        if other != key:
            place.pop(other, None)


def _value(text: str) -> Any:
    try:
        return parsed(f"value = {text}".encode(), "--set")["value"]
    except UsageError:
        if not text or set(text) & set("\"'[]{}#"):
            raise
        return text


def as_option(value: Any) -> str:
    """A value as it would be written on a command line."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    return str(value)
