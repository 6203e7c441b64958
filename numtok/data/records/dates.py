"""Dates and timestamps in a column of strings: the format they are written in, and their values.

Timestamps with a time zone are converted to UTC; those without one are kept as written.
"""

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

_ISO = "ISO 8601"
_ISO_UTC = "ISO 8601 with time zones, converted to UTC"
_ISO_MIXED = "ISO 8601, converted to UTC (values without a time zone are taken as UTC)"
_DAYS = ("%Y-%m-%d", "%Y/%m/%d", "%m/%d/%Y", "%d/%m/%Y", "%d.%m.%Y")
_SHORT_DAYS = ("%m/%d/%y", "%d/%m/%y", "%d.%m.%y")
_FORMATS = (
    *(f"{day}{time}" for day in (*_DAYS, *_SHORT_DAYS) for time in ("", " %H:%M", " %H:%M:%S")),
    "%Y-%m-%dT%H:%M:%S",
    "%m/%d/%Y %I:%M %p",
    "%m/%d/%Y %I:%M:%S %p",
    "%b %d %Y",
    "%d %b %Y",
    "%B %d, %Y",
    "%b %d, %Y",
    "%a %b %d %H:%M:%S %z %Y",
    "%a, %d %b %Y %H:%M:%S %z",
    "%d/%b/%Y:%H:%M:%S %z",
)
_DAY = r"(?P<day>[0-9]{4}-[0-9]{2}-[0-9]{2})"
_TIME = r"(?P<time>[0-9]{2}:[0-9]{2}(?::[0-9]{2})?)(?:[.,](?P<fraction>[0-9]{1,9}))?"
_ZONE = r"(?P<zone>[Zz]|UTC|GMT|[+-][0-9]{2}(?::?[0-9]{2})?)"
_WRITTEN = rf"^\s*{_DAY}(?:[Tt ]{_TIME}(?:\s?{_ZONE})?)?\s*$"
_FIRST = 100  # values that a format must read before it is tried on the whole column


def date_format(values: "pa.Array[Any]", like: str | None = None) -> str | None:
    """Return the format of all dates in a column [n] of strings: a format of strptime, or one of
    the forms of ISO 8601. The result is None if no format reads all values.

    Missing values are ignored.

    like
        Format of related dates, if known. It decides whether an ambiguous date begins with the day
        or the month.

    >>> date_format(pa.array(["2013-02-28T22:11:09Z", "2013-02-28 22:11:09.5+02:00"]))
    'ISO 8601 with time zones, converted to UTC'
    >>> date_format(pa.array(["03/04/2020"])), date_format(pa.array(["03/04/2020"]), "%d.%m.%y")
    ('%m/%d/%Y', '%d/%m/%Y')
    """
    values = values.drop_null()
    first = (like or "")[:2]  # such as %d
    for form in sorted(_FORMATS, key=lambda form: not form.startswith(first)):
        if _reads(form, values[:_FIRST]) and _reads(form, values):
            return form
    if not (_reads(_ISO, values[:_FIRST]) and _reads(_ISO, values)):
        return None
    zones = pc.not_equal(pc.struct_field(_parts(values), "zone"), "")
    if pc.all(zones).as_py():
        return _ISO_UTC
    return _ISO_MIXED if pc.any(zones).as_py() else _ISO


def dates_of(values: "pa.Array[Any]", form: str) -> "pa.Array[Any]":
    """Return strings [n] in the given format as timestamps without a time zone; null if missing or
    not a date."""
    if form.startswith("%"):
        dates = pc.strptime(values, format=form, unit="s", error_is_null=True)
        # %Y reads 79 as the year 79.
        dates = pc.if_else(pc.less(pc.year(dates), 1000), pa.scalar(None, dates.type), dates)
        return dates.cast(pa.timestamp("s"))  # in UTC, if the format has a zone
    return _iso_dates(values)


def iso_texts(dates: "pa.Array[Any]") -> "pa.Array[Any]":
    """Return timestamps [n] as strings that sort in time order: only days if all are midnights,
    and fractions of seconds only if there are any."""
    for unit, form in (("day", "%Y-%m-%d"), ("second", "%Y-%m-%dT%H:%M:%S")):
        rounded = pc.floor_temporal(dates, unit=unit)
        if pc.all(pc.equal(dates, rounded)).as_py() is not False:
            return pc.strftime(rounded.cast(pa.timestamp("s")), format=form)
    return pc.strftime(dates, format="%Y-%m-%dT%H:%M:%S")


def _reads(form: str, values: "pa.Array[Any]") -> bool:
    return bool(dates_of(values, form).null_count == 0)


def _parts(values: "pa.Array[Any]") -> "pa.Array[Any]":
    """Return the day, time, fraction and zone of timestamps [n] in ISO 8601; null for others."""
    return pc.extract_regex(values, pattern=_WRITTEN)


def _iso_dates(values: "pa.Array[Any]") -> "pa.Array[Any]":
    """Return timestamps [n] in ISO 8601, in microseconds of UTC."""
    parts = _parts(values)
    day, time, fraction, zone = (
        pc.struct_field(parts, name) for name in ("day", "time", "fraction", "zone")
    )
    time = pc.if_else(pc.equal(time, ""), "00:00", time)
    time = pc.if_else(pc.equal(pc.utf8_length(time), 5), _joined(time, ":00"), time)
    fraction = pc.utf8_slice_codeunits(pc.utf8_rpad(fraction, 6, "0"), 0, 6)
    zone = pc.if_else(pc.match_substring_regex(zone, "^[+-]"), zone, "Z")
    moments = _joined(_joined(day, "T", time), ".", fraction, zone)
    naive = pc.strptime(
        pc.utf8_slice_codeunits(moments, 0, 19),
        format="%Y-%m-%dT%H:%M:%S",
        unit="s",
        error_is_null=True,
    )
    moments = pc.if_else(naive.is_valid(), moments, pa.scalar(None, pa.string()))
    try:
        return moments.cast(pa.timestamp("us", "UTC")).cast(pa.timestamp("us"))
    except pa.ArrowInvalid:  # such as a zone of +99:00, or a leap second
        return pa.nulls(len(values), pa.timestamp("us"))


def _joined(*parts: "pa.Array[Any] | str") -> "pa.Array[Any]":
    return pc.binary_join_element_wise(*parts, "")
