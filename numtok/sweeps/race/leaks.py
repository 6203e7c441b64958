"""Notes on columns that may contain the target."""

from collections.abc import Iterator

import numpy as np

from numtok.arrays import Floats
from numtok.data.tables.table import Table
from numtok.sweeps.race.leaderboard import Contestant, Leaderboard

_NEARLY_ALL = 0.99  # R2 of a baseline, or correlation of a column, above which a leak is suspected
_FAR = 2.0  # times the error of the baseline that every model has at least
_FEW = 3  # fewest rows for a correlation


def leak_notes(board: Leaderboard, table: Table) -> Iterator[str]:
    """Yield a note if the best baseline explains nearly all of the target and every model has at
    least twice its error.

    It names the column of ``table`` that alone is as close to the target, if there is one.
    """
    baseline = board.place(board.baseline)
    r2, error = baseline.r2.value, _error(baseline)
    errors = [_error(each) for each in board.places if each.is_model]
    if r2 is None or r2 <= _NEARLY_ALL or min(errors) < _FAR * error:
        return
    target = table.file.target
    names = [each.name for each in table.file.features if each.kind == "number"]
    correlations = [abs(correlation(column, table.target)) for column in table.numbers.T]
    largest = max(zip(correlations, names, strict=True), default=(0.0, ""))
    check = "Check that all fields are known before the target."
    if largest[0] > _NEARLY_ALL:
        check = (
            f"The field {largest[1]!r} alone has a correlation of {largest[0]:.4f} with it. Check "
            "that it is known before the target."
        )
    yield (
        f"The baseline {baseline.label} predicts {target!r} almost exactly (R2 {r2:.4f}), far "
        f"better than any model, so a field may contain the target. {check}"
    )


def correlation(column: Floats, target: Floats) -> float:
    """Return the correlation of a column with the target, float64[n] each; 0 if it is undefined.
    Rows in which the column is missing (NaN) are left out.

    >>> correlation(np.array([1.0, np.nan, 2.0, 3.0]), np.array([2.0, 9.0, 4.0, 6.0]))
    1.0
    """
    known = np.isfinite(column)
    if known.sum() < _FEW:
        return 0.0
    # Scaled, because squares of large values overflow.
    x, y = (_scaled(values[known]) for values in (column, target))
    return float(np.clip(x @ y, -1, 1)) if x.any() and y.any() else 0.0


def _scaled(values: Floats) -> Floats:
    """Return values with a mean of 0 and a Euclidean norm of 1; zeros if they are all equal."""
    values = values / max(float(np.abs(values).max()), np.finfo(np.float64).tiny)
    centered = values - values.mean()
    norm = float(np.linalg.norm(centered))
    return centered / norm if norm > 0 else np.zeros_like(centered)


def _error(entry: Contestant) -> float:
    """Return the mean absolute error over the fields; infinite if one is undefined."""
    values = [each.value for each in entry.errors.values()]
    return float(np.mean([np.inf if value is None else value for value in values]))
