"""Prints the numbers found in texts, and the digits that are not part of any number."""

from collections.abc import Iterable, Iterator
from typing import Any

from numtok.cli.output.printing import Format, Part, Sheet, print_parts, print_result
from numtok.numerals.reading import TextReading

_COLUMNS = ("text", "kind", "written", "value", "start", "end", "flags", "reason")


def print_readings(readings: Iterable[TextReading], format: Format) -> None:
    """Print each text with its numbers marked, and list the values of the numbers and the digits
    that are not part of any number.

    In table format, each text is printed immediately, so that lines of standard input appear as
    they arrive.
    """
    if format is Format.TABLE:
        for index, reading in enumerate(readings):
            if index:
                print()
            print_parts(_parts(reading))
        return
    every = list(readings)
    whole = {"texts": [_plain(reading) for reading in every]}
    parts = (part for reading in every for part in _parts(reading))
    print_result(format, whole, _COLUMNS, _records(every), parts)


def _parts(reading: TextReading) -> Iterator[Part]:
    yield [reading.marked()]
    if reading.numbers:
        numbers = [
            (one.literal, _value(one.value), _span(one), ",".join(one.flags) or "default")
            for one in reading.numbers
        ]
        yield Sheet("", ("number", "value", "characters", "read by"), numbers, words=())
    if reading.unread:
        words = [(one.text, _span(one), f"{one.reason}: {one.advice}") for one in reading.unread]
        yield Sheet("not read", ("digits in", "characters", "reason"), words, words=("reason",))
    if not (reading.numbers or reading.unread):
        yield ["The text has no digits."]


def _value(value: float) -> str:
    return repr(value).removesuffix(".0")  # all digits: this is what schemes encode


def _span(item: Any) -> str:
    return f"{item.start}-{item.end}"


def _plain(reading: TextReading) -> dict[str, Any]:
    return {
        "text": reading.text,
        "numbers": [one._asdict() for one in reading.numbers],
        "unread": [one._asdict() for one in reading.unread],
    }


def _records(readings: Iterable[TextReading]) -> Iterator[dict[str, object]]:
    """Yield one CSV row per number and per word whose digits are not part of any number."""
    for index, reading in enumerate(readings):
        for one in reading.numbers:
            row = {"kind": "number", "written": one.literal, "value": one.value}
            row["flags"] = ",".join(one.flags)
            yield row | {"text": index, "start": one.start, "end": one.end}
        for word in reading.unread:
            row = {"kind": "unread", "written": word.text, "reason": word.reason}
            yield row | {"text": index, "start": word.start, "end": word.end}
