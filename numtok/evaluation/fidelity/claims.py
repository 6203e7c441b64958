"""Statements of the papers in words, stored as TOML with the orderings that decide them.

A statement without such orderings has not been run, or only in another setting::

    [[claims]]
    paper = "xval"
    where = "Section 3.1, Table 3"
    claim = "xVal predicts products more precisely than text-based encodings."
    printed = "R2 0.99998 against 0.998"
    measured = "R2 0.99999 against 0.962 with two operands."
    source = "xval/table3"
    checks = [{ table = "xval/table3", column = "2 operands", higher = "xval", lower = "p10" }]
"""

import tomllib
from pathlib import Path
from typing import Literal

import msgspec

from numtok.errors import DataError
from numtok.evaluation.fidelity.measured import Place
from numtok.evaluation.fidelity.orderings import Ordering, is_logarithmic
from numtok.evaluation.published import published


class OrderingCheck(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An ordering that a statement implies: ``higher`` and ``lower`` are rows of ``column``, or
    columns of ``row``."""

    table: str
    higher: str
    lower: str
    column: str | None = None
    row: str | None = None

    def ordering(self) -> Ordering:
        """Return the two cells. Raises UsageError for an unknown table, row or column."""
        table = published(self.table)
        if self.column is not None:
            cells = [(row, self.column) for row in (self.higher, self.lower)]
        else:
            cells = [(str(self.row), column) for column in (self.higher, self.lower)]
        for row, _ in cells:
            table.row(row)  # raises if it is unknown
        column, _ = (table.column(name) for _, name in cells)
        high, low = (Place(self.table, row, name) for row, name in cells)
        printed = [
            float(row[column.name].value) for row in table.rows.values() if column.name in row
        ]
        return Ordering(high, low, column.metric, is_logarithmic(column.metric, printed))


class Claim(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A statement of a paper.

    where, claim, printed
        Place in the paper, the statement in our words, and the numbers that the paper gives.
    measured, source
        Result of numtok, and the data that it rests on.
    checks
        Orderings that the statement implies.
    verdict
        For a statement without checks, why it has no verdict of its own.
    why
        Experiment that isolates why the statement is not reproduced, or "open".
    """

    paper: str
    where: str
    claim: str
    printed: str = ""
    measured: str = ""
    source: str = ""
    checks: list[OrderingCheck] = []
    verdict: Literal["not run", "other setting"] | None = None
    why: str = ""


class _File(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    claims: list[Claim]


def read_claims(path: Path) -> list[Claim]:
    """Read a file of statements.

    Raises DataError if it is not such a file, or if a statement has both checks and a verdict of
    its own, or neither.
    """
    try:
        found = msgspec.convert(tomllib.loads(path.read_text("utf-8")), _File).claims
    except (tomllib.TOMLDecodeError, msgspec.ValidationError, UnicodeDecodeError) as error:
        raise DataError(f"{path}: {error}") from error
    for claim in found:
        if bool(claim.checks) == (claim.verdict is not None):
            raise DataError(
                f"{path}: {claim.claim!r} needs either checks or a verdict (got "
                f"{'both' if claim.checks else 'neither'})"
            )
    return found
