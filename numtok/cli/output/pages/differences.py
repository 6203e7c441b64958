"""Page section with rows on which experiments differ."""

from collections.abc import Iterator, Sequence

import numpy as np

from numtok.analysis.panels.rows import (
    MOST,
    PageRows,
    fields_of,
    page_rows,
    picks_of,
    spreads,
    standard_errors,
)
from numtok.arrays import Floats
from numtok.cli.output.figures import number
from numtok.cli.output.pages.compared import Compared
from numtok.cli.output.pages.page import HeldRow, PageCell, RowList, Section
from numtok.cli.output.pages.parts import LAST, part_filters, size_filters
from numtok.metrics.base import Predictions
from numtok.store.artifact import Resolve


def differences_section(
    compared: Sequence[Compared], resolve: Resolve, records: str | None = None
) -> Iterator[Section]:
    """Yield a section with rows, in descending order of the difference between the experiments.

    If not all rows fit, a quarter of the rows shown have the largest differences, and the others
    are a random sample.

    Each item in ``compared`` is one test set. If its rows are records, ``records`` is the REF of
    the rendered rows, whose texts are shown. Yields nothing if no test set has several experiments
    that predict numbers.
    """
    several = [one for one in compared if len(one.predictions) > 1]
    if not several:
        return
    most = MOST // len(several)
    found = [_differing_rows(one, most, resolve, records) for one in several]
    held = [(far, row) for pair in zip(several, found, strict=True) for far, row in _rows(*pair)]
    held.sort(key=lambda pair: -pair[0])
    every = sum(len(one.errors) for one in found)
    count = (
        f"All {every:,} rows." if every == len(held) else
        f"{len(held):,} of {every:,} rows: a quarter with the largest differences, the rest "
        "drawn at random."
    )  # fmt: skip
    lacking = not all(one.has_texts for one in found)
    text = (
        f"{count} Distances are in standard deviations of the field's true values. Predictions "
        "are of the first seed. A click on an experiment shows the rows in which its error is "
        "largest."
    ) + " Some texts are no longer in the store." * lacking
    named = any(one.heading for one in several)
    columns = [*["test set"] * named, "field", "true", "closest", "farthest", "distance", "text"]
    fields = [name for one in found for name in one.fields]
    filters = [
        *((f"set:{one.name}", one.heading) for one in several if one.heading),
        *part_filters({"field": fields}),
        *(
            (key, f"{one.heading}: {size}" if one.heading else size)
            for one in several
            for key, size in size_filters(one.sizes)
        ),
    ]
    caption = "Rows with the largest differences"
    rows = RowList(
        caption=caption, text=text, columns=columns, rows=[row for _, row in held], filters=filters
    )
    yield Section("rows-section", "Rows on which experiments differ most", "", [rows])


def _differing_rows(
    compared: Compared, most: int, resolve: Resolve, records: str | None
) -> PageRows:
    """Return at most ``most`` rows, in descending order of the difference."""
    label, first = next(iter(compared.predictions.items()))
    far = apart([each.answers for each in compared.predictions.values()], fields_of(first))
    return page_rows(first, far, compared.firsts[label].report, resolve, most=most, records=records)


def apart(answers: Sequence[Predictions], names: Sequence[str]) -> Floats:
    """Return float64[n]: the difference between the largest and the smallest prediction for each
    row, in standard deviations of the true values in the same field.

    The result is infinite if only some of the experiments predict a number, and 0 if none does.
    ``names`` are the fields of the rows.

    >>> both = [Predictions.of([1, 3], one) for one in ([1, 2], [5, 2])]
    >>> apart(both, ["x", "x"]).tolist()
    [4.0, 0.0]
    """
    valid = np.stack([one.valid for one in answers])
    values = np.stack([one.prediction for one in answers])
    high = np.where(valid, values, -np.inf).max(0)
    low = np.where(valid, values, np.inf).min(0)
    with np.errstate(over="ignore", invalid="ignore"):
        found = np.where(valid.all(0), (high - low) / spreads(answers[0].truth, names), np.inf)
    return np.where(valid.any(0), found, 0.0)


def _rows(one: Compared, found: PageRows) -> Iterator[tuple[float, HeldRow]]:
    """Yield the rows of one comparison, each with the distance between its predictions."""
    labels, answers = list(one.predictions), [each.answers for each in one.predictions.values()]
    errors = np.stack([standard_errors(each, found.fields) for each in answers])
    keys = picks_of(found.rows, {"field": found.fields}, one.sizes)
    truth = answers[0].truth_literal
    assert truth is not None

    def predicted(experiment: int, row: int) -> PageCell:
        mine = answers[experiment]
        value = float(mine.prediction[row]) if mine.valid[row] else LAST
        return PageCell(number(value) if value < LAST else "none", value, aside=labels[experiment])

    for row, around, picks in zip(found.rows.tolist(), found.excerpts, keys, strict=True):
        far = min(float(found.errors[row]), LAST)
        closest, farthest = int(errors[:, row].argmin()), int(errors[:, row].argmax())
        cells = [
            *[one.heading] * bool(one.heading),
            found.fields[row],
            PageCell(truth[row], float(answers[0].truth[row])),
            predicted(closest, row),
            predicted(farthest, row),
            PageCell(number(far) if far < LAST else "-", far),
        ]
        own = [*picks, f"label:{labels[farthest]}", f"set:{one.name}"]
        yield far, HeldRow(cells, around.before, truth[row], around.after, own)
