"""The rows on which experiments are farthest apart, as a page holds them."""

from collections.abc import Iterator, Sequence

from numtok.analysis.panels.differences import DifferingRows, differing_rows
from numtok.analysis.panels.rows import MOST, picks_of
from numtok.cli.output.figures import number
from numtok.cli.output.pages.compared import Compared
from numtok.cli.output.pages.page import HeldRow, PageCell, RowList, Section
from numtok.cli.output.pages.parts import part_filters, size_filters
from numtok.store.artifact import Resolve

_LAST = 1e300  # by which what is infinite is sorted


def differences_section(compared: Sequence[Compared], resolve: Resolve) -> Iterator[Section]:
    """The rows of some comparisons, the largest differences first; none where no comparison is of
    several experiments that predict numbers."""
    several = [one for one in compared if len(one.predictions) > 1]
    if not several:
        return
    most = MOST // len(several)
    found = [differing_rows(one.firsts, one.predictions, most, resolve) for one in several]
    held = [(far, row) for pair in zip(several, found, strict=True) for far, row in _rows(*pair)]
    held.sort(key=lambda pair: -pair[0])
    every = sum(len(one.apart) for one in found)
    count = (
        f"All {every:,} rows." if every == len(held) else
        f"{len(held):,} of {every:,} rows: a quarter with the largest differences, the others "
        "drawn at random."
    )  # fmt: skip
    lacking = any(one.excerpts is None for one in found)
    text = (
        f"{count} Predictions are apart in standard deviations of the truths of the same slot; "
        "they are those of the first seed. A click on an experiment shows the rows in which it is "
        "farthest from the truth."
    ) + " Some texts are no longer in the store." * lacking
    named = any(one.heading for one in several)
    columns = [*["test set"] * named, "slot", "truth", "closest", "farthest", "apart", "text"]
    slots = [name for one in found for name in one.slots]
    filters = [
        *((f"set:{one.name}", one.heading) for one in several if one.heading),
        *part_filters({"slot": slots}),
        *(
            (key, f"{one.heading}: {told}" if one.heading else told)
            for one in several
            for key, told in size_filters(one.sizes)
        ),
    ]
    caption = "Rows with the predictions farthest apart"
    rows = RowList(
        caption=caption, text=text, columns=columns, rows=[row for _, row in held], filters=filters
    )
    yield Section("rows-section", "Rows on which experiments differ most", "", [rows])


def _rows(one: Compared, found: DifferingRows) -> Iterator[tuple[float, HeldRow]]:
    """The rows of one comparison, and how far apart predictions are in each."""
    labels, answers = list(one.predictions), [each.answers for each in one.predictions.values()]
    keys = picks_of(found.rows, {"slot": found.slots}, one.sizes)
    truth = answers[0].truth_literal
    assert truth is not None

    def said(experiment: int, row: int) -> PageCell:
        mine = answers[experiment]
        value = float(mine.prediction[row]) if mine.valid[row] else _LAST
        return PageCell(number(value) if value < _LAST else "none", value, aside=labels[experiment])

    for place, row in enumerate(found.rows.tolist()):
        far = min(float(found.apart[row]), _LAST)
        farthest = int(found.farthest[row])
        around = found.excerpts[place] if found.excerpts is not None else None
        cells = [
            *[one.heading] * bool(one.heading),
            found.slots[row],
            PageCell(truth[row], float(answers[0].truth[row])),
            said(int(found.closest[row]), row),
            said(farthest, row),
            PageCell(number(far) if far < _LAST else "-", far),
        ]
        own = [*keys[place], f"label:{labels[farthest]}", f"set:{one.name}"]
        before, after = (around.before, around.after) if around else ("", "")
        yield far, HeldRow(cells, before, truth[row], after, own)
