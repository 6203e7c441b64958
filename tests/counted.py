"""Count texts as ``numtok profile`` does, in memory, in any division into batches and units."""

from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa

from numtok.analysis.profiling.field_profile import FieldProfile, field_profile
from numtok.analysis.profiling.field_statistics import NumberStatistics
from numtok.analysis.profiling.unit import Counted, Counting, merged
from numtok.data.reading.rows import Categories, RowColumns, Targets
from numtok.encoding.targets import resolve
from numtok.encoding.texts import Texts
from numtok.numerals.policy import NumeralPolicy

#: Target names with their spans, in characters of the text.
Marked = Mapping[str, Sequence[tuple[int, int]]]


def count(
    units: Sequence[Sequence[Sequence[str]]],
    targets: Mapping[str, Marked] | None = None,
    policy: NumeralPolicy | None = None,
    same_ids: bool = False,
) -> Counted:
    """Count the texts of each batch of each unit; ``targets`` maps a text to its marked spans."""
    parts = []
    row = 0
    for unit in units:
        counting = Counting(learning=False)
        for batch in unit:
            ids = ["x" if same_ids else str(row + k) for k in range(len(batch))]
            row += len(batch)
            _add(counting, ids, batch, targets or {}, policy or NumeralPolicy())
        parts.append(counting.finished())
    return merged(parts)


def _add(
    counting: Counting,
    ids: Sequence[str],
    batch: Sequence[str],
    targets: Mapping[str, Marked],
    policy: NumeralPolicy,
) -> None:
    column = pa.array(batch, pa.string())
    texts = Texts.of(column)
    spans = texts.find(policy)
    marked = [
        (row, name, *span)
        for row, text in enumerate(batch)
        for name, found in targets.get(text, {}).items()
        for span in found
    ]
    owners, names, starts, ends = zip(*marked, strict=True) if marked else ((),) * 4
    named = pa.array(ids, pa.string())
    rows = RowColumns(
        ids=named,
        texts=column,
        targets=Targets(
            np.array(owners, np.int32),
            Categories.of(names),
            np.array(starts, np.int64),
            np.array(ends, np.int64),
        ),
    )
    resolved = resolve(rows, texts, spans)
    assert not resolved.problems
    splits = Categories.of(["train"] * len(batch))
    counting.add(Texts.of(named), texts, spans, resolved, splits)


def labels(counted: Counted) -> dict[int, str]:
    """Return the label of each node with numbers, in text order."""
    places = counted.places()
    beyond = [node for node in (1,) if places.pop(node, None) is not None]
    return counted.fields.labels(counted.fields.ordered(places) + beyond)


def values(counted: Counted) -> dict[str, Counter[float]]:
    """Return how often each value of a field occurs; a field must have fewer than 1,024."""
    found = {}
    for node, label in labels(counted).items():
        distinct = counted.tallies[node].distinct
        assert distinct.exact
        pairs = zip(distinct.values.tolist(), distinct.counts.tolist(), strict=True)
        found[label] = Counter(dict(pairs))
    return found


def tally(counted: Counted) -> NumberStatistics:
    """Return the statistics of the only field."""
    (only,) = counted.tallies.values()
    return only


def figures(counted: Counted) -> dict[str, FieldProfile]:
    """Return the profile of every field."""
    return {label: field_profile(node, label, counted) for node, label in labels(counted).items()}
