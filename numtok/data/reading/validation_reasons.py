"""Rewords the validation errors of msgspec for users."""

import re

_WRONG_TYPE = re.compile(r"Expected `([\w| ]+)`([^`]*?)(?:, got (.+?))?(?: - at `\$\.?(.*)`)?")
_MISSING = re.compile(r"Object missing required field `(.*?)`(?: - at `\$\.?(.*)`)?")
_AT = re.compile(r"(.+) - at `\$\.?(.*)`")
#: Types of JSON, as msgspec and as messages name them, in the order in which they are listed.
_TYPES = {
    "str": "a string",
    "int": "an integer",
    "float": "a number",
    "bool": "a boolean",
    "object": "an object",
    "array": "an array",
    "null": "null",
}


def validation_reason(message: str) -> str:
    """Reword a msgspec validation error for users, and add advice on fixing the row if possible.

    >>> validation_reason("Object missing required field `text`")
    "the field 'text' is missing. Name the field that holds the text: --text-field"
    >>> validation_reason("Expected `int | str | null`, got `float` - at `$.id`")
    "'id' must be a string or an integer (got a float)"
    """
    if "missing required field" in message:
        return f"{reworded(message)}. Name the field that holds the text: --text-field"
    if message.startswith("Expected `object`,") and " - at " not in message:
        return f"{reworded(message)}. Split an array into lines: jq -c '.[]'"
    return reworded(message)


def reworded(message: str) -> str:
    """Reword a msgspec validation error so that it names the field first, then the allowed types.

    >>> reworded("Expected `array` of length 2, got 1 - at `$.numbers`")
    "'numbers' must be an array of length 2 (got length 1)"
    >>> reworded("Expected `array` of length 2 - at `$.numbers`")
    "'numbers' must be an array of length 2"
    """
    if match := _WRONG_TYPE.fullmatch(message):
        kinds, size, actual, path = match.groups()
        names = set(kinds.split(" | "))
        if len(names) > 1:
            names.discard("null")
        if "float" in names:
            names.discard("int")
        allowed = [words for name, words in _TYPES.items() if name in names] or sorted(names)
        *first, last = allowed
        expected = f"{', '.join(first)} or {last}" if first else last
        subject = repr(path) if path else "the line"
        if actual is None:
            return f"{subject} must be {expected}{size}"
        actual = actual.strip("`")
        shown = "a float" if actual == "float" else _TYPES.get(actual, actual)
        if "length" in size:
            shown = f"length {shown}"
        return f"{subject} must be {expected}{size} (got {shown})"
    if match := _MISSING.fullmatch(message):
        name, path = match.groups()
        return f"the field {f'{path}.{name}' if path else name!r} is missing"
    if match := _AT.fullmatch(message):
        problem, path = match.groups()
        return f"{path!r}: {problem[:1].lower()}{problem[1:]}" if path else problem
    return message
