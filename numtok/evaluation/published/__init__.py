"""The numbers printed in the papers: one TOML file a table, with what is doubtful about it.

``published("xval/table3")`` reads ``xval/table3.toml`` beside this file. Values
are decimals, so that 0.990 keeps the digits that were printed.
"""

import tomllib
from decimal import Decimal
from pathlib import Path

import msgspec

from numtok.errors import unknown

_FOLDER = Path(__file__).parent


class Cell(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One printed number; ``deviation`` is what stands behind a printed plus-minus, ``invalid``
    the printed share of outputs that were no number."""

    value: Decimal
    deviation: Decimal | None = None
    invalid: Decimal | None = None
    footnote: str | None = None


class Column(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What one column holds.

    name
        As printed, or nearly.
    metric
        A metric of numtok, or ``tokens-per-number``, ``vocabulary``, ``train-hours``.
    group
        The group of a report that measures the same, at most one: ``{operands = "2"}``.
    head
        The kind of head that it is about, where rows are data sets: ``decoder:ud``.
    target, split
        The target that it is about, where a row has several, and on which split: one out of
        distribution, such as ``ood-a1``. None: one that is not.
    data
        The data that it is about, where a table has several: ``measurement``, as the task or the
        source calls them.
    """

    name: str
    metric: str
    group: dict[str, str] = {}
    head: str | None = None
    target: str | None = None
    split: str | None = None
    data: str | None = None

    @property
    def is_of_all(self) -> bool:
        """Whether it is of a whole report, not of a part of one or of some data."""
        return not (self.group or self.head or self.target or self.data)


class PublishedTable(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One table of a paper.

    source, caption
        Where it stands, and what it is about in our words.
    setup
        What the paper states of a setting, by its name in the configuration of a report and as
        that spells it: ``mlm:tokens`` is of whatever rate, but neither ``mlm`` nor ``mlm:targets``.
    row_setup
        The same of some rows, to the last setting: ``{numvalue-mlp = {objective = "numvalue"}}``.
    doubts
        What keeps a figure from being comparable: one sentence each.
    rows
        Scheme, head or data set to name of column to cell; a cell that was not printed is absent.
        ``-pretrained`` behind it stands for models that began with the weights of another one.
    row_of
        The rows of presets that have one of their own, and of schemes that have another name there:
        ``{digits = "gpt", bigru = "bigru"}``.
    """

    source: str
    caption: str
    columns: list[Column]
    rows: dict[str, dict[str, Cell]]
    doubts: list[str]
    setup: dict[str, str] = {}
    row_setup: dict[str, dict[str, str]] = {}
    row_of: dict[str, str] = {}

    @property
    def prints_invalid(self) -> bool:
        """Whether it tells which share of the outputs was no number; some may be too small for
        it."""
        return any(cell.invalid is not None for row in self.rows.values() for cell in row.values())

    def column(self, name: str) -> Column:
        """The column of that name; UsageError with the nearest match if there is none."""
        for column in self.columns:
            if column.name == name:
                return column
        raise unknown("column", name, [column.name for column in self.columns])

    def row(self, name: str) -> dict[str, Cell]:
        """The cells of a row; UsageError with the nearest match if it has no row."""
        if name not in self.rows:
            raise unknown("row", name, self.rows, f"{self.source} has no other")
        return self.rows[name]


def names() -> tuple[str, ...]:
    """All tables, as ``PAPER/TABLE``, sorted."""
    found = _FOLDER.glob("*/*.toml")
    return tuple(sorted(path.relative_to(_FOLDER).with_suffix("").as_posix() for path in found))


def published(name: str) -> PublishedTable:
    """The table of that name; UsageError with the nearest match if there is none.

    >>> published("xval/table3").rows["p10"]["2 operands"].value
    Decimal('0.998')
    """
    if name not in names():
        raise unknown("published table", name, names())
    text = _FOLDER.joinpath(f"{name}.toml").read_text("utf-8")
    return msgspec.convert(tomllib.loads(text, parse_float=Decimal), PublishedTable)
