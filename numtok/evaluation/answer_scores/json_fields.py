"""Reads fields of JSON lines by name or path, and keeps numbers as written."""

from collections.abc import Collection, Mapping, Sequence

import msgspec

Raw = msgspec.Raw
_OBJECT = msgspec.json.Decoder(dict[str, Raw])
_ARRAY = msgspec.json.Decoder(list[Raw])
_STRING = msgspec.json.Decoder(str)


class JsonFields:
    """Decoder that returns selected fields of a JSON object as text.

    names
        Mapping from the key under which a field is returned to the field's name. ``doc.text`` is
        the field of that name or, if the object has no such field, the field ``text`` of the object
        in ``doc``. ``resps.0`` is the first element of the array in ``resps``.
    comma
        Keys under which a number is returned with a decimal comma, for readers that expect one.

    Strings are decoded, all other numbers stay as written, and null becomes None. Fields that the
    object lacks are omitted. Decoding raises msgspec.ValidationError if a field has any other
    value.

    >>> fields = JsonFields({"truth": "doc.y", "answer": "resps.0"})
    >>> fields.decode(b'{"doc": {"y": 1.50}, "resps": ["It is 1.5", "2"]}')
    {'truth': '1.50', 'answer': 'It is 1.5'}
    """

    def __init__(self, names: Mapping[str, str], comma: Collection[str] = ()) -> None:
        self._names = names
        self._comma = comma

    def decode(self, line: bytes, /) -> dict[str, str | None]:
        """Return the texts of the fields in a line, keyed as in ``names``."""
        row = _OBJECT.decode(line)
        texts = {}
        for key, name in self._names.items():
            value = row.get(name)
            if value is None and "." in name:
                value = _nested(row, name.split("."))
            if value is not None:
                texts[key] = _text(bytes(value), name, key in self._comma)
        return texts


def _nested(row: Mapping[str, Raw], path: Sequence[str]) -> Raw | None:
    """Return the value at a path, or None if the row lacks it."""
    value = row.get(path[0])
    for name in path[1:]:
        if value is None:
            return None
        first = bytes(value).lstrip()[:1]
        if first == b"{":
            value = _OBJECT.decode(value).get(name)
        elif first == b"[" and name.isdecimal():
            elements = _ARRAY.decode(value)
            value = elements[int(name)] if int(name) < len(elements) else None
        else:
            return None
    return value


def _text(value: bytes, name: str, comma: bool) -> str | None:
    first = value[:1]
    if first == b'"':
        return _STRING.decode(value)
    if value == b"null":
        return None
    if first in b"{[tf":
        shown = {b"{": "object", b"[": "array"}.get(first, "bool")
        # Worded as in msgspec, whose messages are translated for the user elsewhere.
        raise msgspec.ValidationError(f"Expected `str | float`, got `{shown}` - at `$.{name}`")
    number = value.decode()
    return number.replace(".", ",") if comma else number
