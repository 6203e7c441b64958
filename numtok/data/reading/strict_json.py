"""What Python's ``json`` takes and is no sound JSON: hooks that refuse it."""

import json
from typing import Any, NoReturn


class KeyTwice(ValueError):
    """An object has a key twice."""


class ConstantFound(ValueError):
    """NaN, Infinity or -Infinity, which the message is."""


def refuse_twice(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """``object_pairs_hook`` that raises KeyTwice.

    >>> refuse_twice([("a", 1), ("b", 2)])
    {'a': 1, 'b': 2}
    """
    found = dict(pairs)
    if len(found) < len(pairs):
        keys: set[str] = set()
        twice = next(key for key, _ in pairs if key in keys or keys.add(key))  # type: ignore[func-returns-value]
        raise KeyTwice(f"the key {twice!r} is there twice")
    return found


def refuse_constant(name: str) -> NoReturn:
    """``parse_constant`` that raises ConstantFound."""
    raise ConstantFound(name)


def check_characters(written: str, value: Any) -> None:
    """ValueError where a string of a value, written so as JSON, has half a surrogate pair."""
    if "\\ud" in written or "\\uD" in written:
        try:
            json.dumps(value, ensure_ascii=False).encode()
        except UnicodeEncodeError:
            raise ValueError(
                r"a string has half a surrogate pair (\ud800 to \udfff), which is no character"
            ) from None
