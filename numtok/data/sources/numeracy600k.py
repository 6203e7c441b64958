"""numeracy600k: headlines with one number each, labeled with the number's order of magnitude."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path

import msgspec

from numtok.data.reading.validation_reasons import reworded
from numtok.data.sources._json_items import items
from numtok.data.sources.base import OneFileSource, Origin, RejectedSourceRow, TextRow
from numtok.declaration import setting
from numtok.errors import DataError, UsageError
from numtok.row import Row
from numtok.stored_json import Scalar

_REPOSITORY = (
    "https://github.com/aistairc/Numeracy-600K/raw/ce2993ccb296c03ab4adc3c480b541eca4730750"
)
_SETS = {"titles": "Numeracy_600K_article_title", "comments": "Numeracy_600K_market_comment"}
_CLASSES = 8
_NUMERAL = re.compile(r"[-+]?(?:[0-9][0-9,]*(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][-+]?[0-9]+)?")


class _Title(msgspec.Struct):
    """A published row; ``offset`` and ``length`` are in characters of the text."""

    id: str | int
    text: str = msgspec.field(name="title")
    number: str
    offset: int
    length: int
    magnitude: int | None = None


class _Comment(_Title):
    text: str = msgspec.field(name="comment")


@dataclass(frozen=True)
class Numeracy600k(OneFileSource):
    """Numeracy-600K (Chen et al. 2019): 600,000 headlines or comments with one marked number each.

    from_
        URL, file or folder with the JSON list or the published zip; by default the published file.
    set
        ``titles`` (news headlines, used by NumGPT) or ``comments`` (market comments). The text of
        the comments is not public, so ``comments`` requires a file from the full release.
    number
        ``masked`` replaces the number with the placeholder; the label is the number of digits
        before the point (0 for numbers below 1, at most 7). ``target`` keeps the number in the text
        as a target and omits the label. In this form, numbers such as 1,250,000 require ``numtok
        encode --numbers thousands``, or are skipped with ``--on-error skip``.
    placeholder
        Text that replaces a masked number.
    split
        Fraction of the rows in each split. Rows are assigned by a seeded hash of the text without
        its number, so headlines that only differ in the number are in the same split. The authors
        did not publish a split; papers report testing on a sixth of the rows.
    on_error
        Bad rows: ``fail`` (an error) or ``skip`` (count and omit them).

    >>> magnitude("0.5"), magnitude("2010"), magnitude("2,500,000")
    (0, 4, 7)

    Raises UsageError if a setting is invalid.
    """

    revision = 2
    licence = "CC BY-NC-SA 4.0, not for commercial use (the text of the titles alone is CC0)"
    attribution = (
        "Numeracy-600K: Chen, Huang, Takamura and Chen, Numeracy-600K: Learning Numeracy for "
        "Detecting Exaggerated Information in Market Comments, ACL 2019 "
        "(github.com/aistairc/Numeracy-600K)"
    )

    from_: str = ""
    set: str = setting("titles", choices=tuple(_SETS))
    number: str = setting("masked", choices=("masked", "target"))
    placeholder: str = "_"
    split: str = "test=0.1667"
    on_error: str = setting("fail", choices=("fail", "skip"))

    def __post_init__(self) -> None:
        marks = ("[PAD]", "[MASK]", "[END]", "[NUM]")  # tokens of vocabularies
        if (
            not self.placeholder
            or re.search(r"\d", self.placeholder)
            or any(mark in self.placeholder for mark in marks)
        ):
            raise UsageError(
                f"--placeholder must be a text without digits and without {', '.join(marks)}, such "
                f"as _ (got {self.placeholder!r})"
            )
        if self.number == "target" and self.placeholder != "_":
            raise UsageError("--placeholder only applies to --number masked")

    @property
    def shares(self) -> str:
        return self.split

    def origins(self) -> Iterator[Origin]:
        if self.set == "comments" and not self.from_:
            raise UsageError(
                "--set comments needs --from FILE, because the text of the comments is not public. "
                "Request the full release from its authors"
            )
        stem = _SETS[self.set]
        name = "numeracy600k" if self.set == "titles" else f"numeracy600k-{self.set}"
        files = [f"{stem}.json", f"{stem}.zip"]
        key = ["set", "number", "placeholder", "on_error"]
        yield self.origin(name, f"{_REPOSITORY}/{stem}.zip", files, key)

    def rows(
        self, origin: Origin, files: Mapping[str, Path]
    ) -> Iterator[TextRow | RejectedSourceRow]:
        ((_, path),) = files.items()
        kind = _Title if self.set == "titles" else _Comment
        for number, (keys, item) in enumerate(items(path, 1), 1):
            if keys:
                raise DataError(
                    f"{path} must be a JSON list of rows (got an object with the key {keys[0]!r}). "
                    "Pass the list alone"
                )
            try:
                row = msgspec.convert(item, kind)
                yield self._row(row)
            except ValueError as error:  # msgspec.ValidationError is one
                who = f" (id {item['id']})" if isinstance(item, dict) and "id" in item else ""
                why = reworded(str(error)).replace("`", "'")
                yield RejectedSourceRow(f"{path}: item {number:,}{who}: {why}")

    def _row(self, row: _Title) -> TextRow:
        """Build a row of data. Raises ValueError if it cannot be used."""
        begin, end = row.offset, row.offset + row.length
        marked = row.text[begin:end] if 0 <= begin < end else ""
        if marked != row.number:
            raise ValueError(
                f"the number is {row.number!r}, but characters {begin} to {end} are {marked!r}"
            )
        label = magnitude(row.number)
        if row.magnitude is not None and not 0 <= row.magnitude < _CLASSES:
            raise ValueError(f"magnitude must be from 0 to {_CLASSES - 1} (got {row.magnitude})")
        noted = () if row.magnitude in (None, label) else ("magnitude_differs",)
        alike = f"{row.text[:begin]}_{row.text[end:]}"
        if self.number == "masked":
            text = row.text[:begin] + self.placeholder + row.text[end:]
            return TextRow(Row(text=text, id=str(row.id), label=label), noted, alike=alike)
        targets = {"number": [(begin, end)]}
        group: dict[str, Scalar] = {"magnitude": label}
        unmasked = Row(text=row.text, id=str(row.id), targets=targets, group=group)
        return TextRow(unmasked, noted, alike=alike)


def magnitude(number: str) -> int:
    """Return the order-of-magnitude class of a numeral.

    The class is 0 below 1, 1 from 1 to below 10, and so on, up to 7 for 10^6 or more. The sign is
    ignored. Raises ValueError if the text is not a numeral.
    """
    if not _NUMERAL.fullmatch(number):
        raise ValueError(f"{number!r} is not a number")
    value = Decimal(number.replace(",", "")).copy_abs()  # unlike abs, does not round
    return 0 if value < 1 else min(_CLASSES - 1, value.adjusted() + 1)
