"""Numbers printed in papers, with caveats. Each table is a TOML file.

``published("xval/table3")`` reads ``xval/table3.toml`` in this folder. Values are decimals, so that
0.990 keeps its printed digits.
"""

import tomllib
from decimal import Decimal
from pathlib import Path

import msgspec

from numtok.errors import unknown

_FOLDER = Path(__file__).parent


class Cell(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One number printed in a table of a paper.

    deviation
        Number printed after the plus-minus sign.
    invalid
        Printed fraction of outputs that were not numbers.
    """

    value: Decimal
    deviation: Decimal | None = None
    invalid: Decimal | None = None
    footnote: str | None = None


class Column(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Column of a published table, and the part of a report that it corresponds to.

    name
        Name of the column, as printed or nearly so.
    metric
        Name of a metric, or ``tokens-per-number``, ``vocabulary`` or ``train-hours``.
    group
        Group of a report that the column corresponds to, such as ``{operands = "2"}``; at most one.
    head
        Kind of head, such as ``decoder:ud``, in tables whose rows are data sets.
    target, split
        Name of the target, if data rows have several targets, and name of the out-of-distribution
        split, such as ``ood-a1`` (None: in distribution).
    data
        Name of the task or source, such as ``measurement``, if a table covers several data sets.
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
        """True if the column corresponds to whole reports, not only to a group, head, target or
        data set."""
        return not (self.group or self.head or self.target or self.data)


class PublishedTable(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One table of a paper.

    source, caption
        Location of the table in the paper, and a description in our own words.
    setup
        Settings that the paper states, named and spelled as in the configuration of a report. A
        spec also matches specs with more settings: ``mlm:tokens`` matches ``mlm:tokens,rate=0.15``,
        but neither ``mlm`` nor ``mlm:targets``.
    row_setup
        Settings of individual rows, which must match exactly: ``{numvalue-mlp = {objective =
        "numvalue"}}``.
    doubts
        Reasons why the printed values may not be comparable with measured ones, one sentence each.
    rows
        Cells, keyed by row (scheme, head or data set) and then by column name. Cells that were not
        printed are absent. The suffix ``-pretrained`` marks models initialized from another model.
    row_of
        Row name of each preset that has a row, and of each scheme that has a different name in the
        table: ``{digits = "gpt", bigru = "bigru"}``.
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
        """True if at least one cell contains the fraction of outputs that were not numbers."""
        return any(cell.invalid is not None for row in self.rows.values() for cell in row.values())

    def column(self, name: str) -> Column:
        """Return the column called ``name``. Raises UsageError, which suggests the nearest match,
        if the name is unknown."""
        for column in self.columns:
            if column.name == name:
                return column
        raise unknown("column", name, [column.name for column in self.columns])

    def row(self, name: str) -> dict[str, Cell]:
        """Return the cells of a row, keyed by column name. Raises UsageError, which suggests the
        nearest match, if the row is unknown."""
        if name not in self.rows:
            raise unknown("row", name, self.rows, f"{self.source} has no other rows")
        return self.rows[name]


def names() -> tuple[str, ...]:
    """Return the names of all tables as ``PAPER/TABLE``, sorted."""
    paths = _FOLDER.glob("*/*.toml")
    return tuple(sorted(path.relative_to(_FOLDER).with_suffix("").as_posix() for path in paths))


def published(name: str) -> PublishedTable:
    """Read the table called ``name``. Raises UsageError, which suggests the nearest match, if the
    name is unknown.

    >>> published("xval/table3").rows["p10"]["2 operands"].value
    Decimal('0.998')
    """
    if name not in names():
        raise unknown("published table", name, names())
    text = _FOLDER.joinpath(f"{name}.toml").read_text("utf-8")
    return msgspec.convert(tomllib.loads(text, parse_float=Decimal), PublishedTable)
