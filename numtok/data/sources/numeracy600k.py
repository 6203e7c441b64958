"""numeracy600k: headlines with a number each, and its order of magnitude as the label."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path

import msgspec

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
    """A row as it was published; ``offset`` and ``length`` are in characters of the text."""

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
    """Numeracy-600K (Chen et al. 2019): 600,000 headlines, in each of which one number is marked.

    from_
        A URL, a file or a folder with it: the JSON list, or the zip that was published.
    set
        ``titles``, headlines of news (as NumGPT has them), or ``comments``, of the market: their
        text is not public, so they need a file of the full release.
    number
        ``masked``: the number is replaced by the ``placeholder``, and the label is its class, 0 for
        numbers below 1, else that of its digits before the point, and 7 for a million and more.
        ``target``: the text stays as it is, the number is a target, and there is no label. What
        is no number by docs/NUMERALS.md, such as 1,250,000, needs ``numtok encode --numerals
        default,thousands=yes``, or is left out there with ``--on-error skip``.
    placeholder
        What stands in place of a masked number.
    split
        Shares by a seeded hash of the text without its number, so that headlines that differ in
        nothing else are in one split: no official split is published; a sixth for the test is what
        is reported.
    on_error
        ``fail``, or ``skip``: rows that cannot be used are counted and left out.

    >>> magnitude("0.5"), magnitude("2010"), magnitude("2,500,000")
    (0, 4, 7)

    Raises UsageError for settings that cannot be.
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
                f"--placeholder {self.placeholder!r} is not possible; allowed is a text without "
                f"digits and none of {', '.join(marks)}, such as _"
            )
        if self.number == "target" and self.placeholder != "_":
            raise UsageError("--placeholder means nothing with --number target; leave it out")

    @property
    def shares(self) -> str:
        return self.split

    def origins(self) -> Iterator[Origin]:
        if self.set == "comments" and not self.from_:
            raise UsageError(
                "--set comments needs --from FILE: the text of the comments is not public; "
                "its authors give the full release on request"
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
                    f"{path} is a JSON object with {keys[0]!r} in it; what was published is a list "
                    "of rows: give that list alone"
                )
            try:
                row = msgspec.convert(item, kind)
                yield self._row(row)
            except ValueError as error:  # msgspec.ValidationError is one
                who = f" (id {item['id']})" if isinstance(item, dict) and "id" in item else ""
                why = str(error).replace("`", "'").replace("$.", "")
                yield RejectedSourceRow(f"{path}: item {number:,}{who}: {why}")

    def _row(self, row: _Title) -> TextRow:
        """A row of data; ValueError says why there cannot be one."""
        begin, end = row.offset, row.offset + row.length
        marked = row.text[begin:end] if 0 <= begin < end else ""
        if marked != row.number:
            raise ValueError(
                f"the number is {row.number!r}, and characters {begin} to {end} are {marked!r}"
            )
        label = magnitude(row.number)
        if row.magnitude is not None and not 0 <= row.magnitude < _CLASSES:
            raise ValueError(f"magnitude is {row.magnitude}; the classes are 0 to {_CLASSES - 1}")
        noted = () if row.magnitude in (None, label) else ("magnitude_differs",)
        alike = f"{row.text[:begin]}_{row.text[end:]}"
        if self.number == "masked":
            text = row.text[:begin] + self.placeholder + row.text[end:]
            return TextRow(Row(text=text, id=str(row.id), label=label), noted, alike=alike)
        targets = {"number": [(begin, end)]}
        group: dict[str, Scalar] = {"magnitude": label}
        made = Row(text=row.text, id=str(row.id), targets=targets, group=group)
        return TextRow(made, noted, alike=alike)


def magnitude(number: str) -> int:
    """The class of a numeral, 0 to 7; ValueError for what is none."""
    if not _NUMERAL.fullmatch(number):
        raise ValueError(f"{number!r} is no number")
    value = Decimal(number.replace(",", "")).copy_abs()  # which does not round
    return 0 if value < 1 else min(_CLASSES - 1, value.adjusted() + 1)
