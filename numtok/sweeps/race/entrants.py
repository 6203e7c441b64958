"""The data of a race: rows, splits, candidates, and what each candidate trains on.

Texts are encoded with the scheme of each candidate. A table is not encoded; all heads that read it
train on the same table artifact.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from numtok.arrays import Floats
from numtok.data.reading.split_rule import TRAIN
from numtok.data.tables.table import VALIDATION
from numtok.encoding.splits import read_split
from numtok.errors import DataError
from numtok.evaluation.fields import LEAST as LEAST_OF_FIELD
from numtok.evaluation.intervals import USED
from numtok.evaluation.record_splits import read_record_splits
from numtok.evaluation.rivals import Rivals, merged, rivals
from numtok.evaluation.tabicl_rival import tabicl_rival
from numtok.evaluation.tabular_rival import tabular_rival
from numtok.settings.race import Config
from numtok.stages import encode
from numtok.store.artifact import Artifact
from numtok.store.store import Store
from numtok.sweeps.race.candidates import COLUMNS, Entrant, Verdict
from numtok.sweeps.race.plan import Progress, RaceProgress
from numtok.sweeps.race.words import FieldSummary

Kind = Literal["rows of text", "rows of a table", "records"]
#: Rows of the train split, and of each other split: fewer raise an error, or give a warning.
LEAST, FEW = (40, 10), (200, 30)
_PREDICTED = 2_000  # numbers of the validation split that are predicted, at most
_MORE = 5  # times as many of the test split


@dataclass(frozen=True, kw_only=True)
class Entered:
    """The data of a race, and the candidates that may take part.

    kind
        Kind of the rows: ``rows of text``, ``rows of a table`` or ``records``.
    config
        Settings that read the texts; their inputs differ from the user's if records were rendered.
    split
        The rule by which texts are split, in the syntax of ``--split``; None if the data is already
        split.
    records
        The rendered rows of records; None for other data.
    tables
        The tables that candidates train on, keyed by :attr:`Entrant.table`.
    columns
        Lines that describe the columns of records.
    features, text_only
        Fields of records that are columns for all candidates, and fields that only text models
        read.
    text_preset, table_preset
        The presets that the user chose; None for usual ones.
    test
        The split that the last round evaluates in addition to validation.
    rows
        Numbers of rows in the train, validation and test splits.
    """

    name: str
    kind: Kind
    config: Config
    fields: list[FieldSummary]
    verdicts: list[Verdict]
    entries: list[Entrant]
    split: str | None
    test: str
    rows: tuple[int, int, int]
    notes: list[str]
    tables: Mapping[str, Artifact] = field(default_factory=dict)
    records: Artifact | None = None
    columns: Sequence[str] = ()
    features: Sequence[str] = ()
    text_only: Sequence[str] = ()
    text_preset: str | None = None
    table_preset: str | None = None

    @property
    def is_table(self) -> bool:
        """True if all candidates are heads on a table."""
        return all(entry.table is not None for entry in self.entries)

    @property
    def first_text(self) -> Entrant:
        """The first candidate for texts. Only available if there is one."""
        return next(entry for entry in self.entries if entry.table is None)


class Encodings:
    """The artifacts that candidates train on.

    Texts are encoded with a scheme only when a candidate first needs it, so candidates that are
    left out for lack of time cost nothing. A table is shared by all heads that read it.
    """

    def __init__(self, entered: Entered, store: Store, progress: Progress) -> None:
        self._config, self._entered, self._store = entered.config, entered, store
        self._progress = progress
        self._artifacts: dict[tuple[str, str | None], Artifact] = {}

    def of(self, entry: Entrant) -> Artifact:
        """Return the artifact that a candidate trains on, after encoding the texts if necessary."""
        if entry.table is not None:
            return self._entered.tables[entry.table]
        key = entry.scheme, entry.normalize
        if key not in self._artifacts:
            entries = self._entered.entries
            done = entries.index(entry)
            self._progress(RaceProgress("", f"encoding {entry.label}", done, len(entries)))
            self._artifacts[key] = self._encoded(*key)
        return self._artifacts[key]

    def _encoded(self, scheme: str, normalize: str | None) -> Artifact:
        config = self._config
        encoded = encode.run(
            encode.Config(
                config.inputs,
                scheme=scheme,
                split=self._entered.split,
                numerals=config.numerals,
                not_numbers=config.not_numbers,
                normalize=normalize,
                text_field=config.text_field,
                on_error=config.on_error,
                engine=config.engine,
            ),
            self._store,
            lambda *_: None,
        ).artifact
        assert encoded is not None  # only a dry run returns None
        return encoded


def predicted_rows(data: Encodings, entered: Entered) -> tuple[int | None, int | None]:
    """Return the numbers of rows to predict in the validation split and in the test split; None for
    all rows.

    A text is predicted once for each of its numbers, so fewer rows are predicted if rows contain
    many numbers.
    """
    if entered.is_table:
        return None, None
    samples = read_split(data.of(entered.first_text), VALIDATION)
    predictions = len(samples.targets) or len(samples.numbers)
    per_row = max(1.0, predictions / len(samples))
    most = max(LEAST_OF_FIELD, int(_PREDICTED / per_row))
    _, validation, test = entered.rows
    return (
        most if validation > most else None,
        _MORE * most if test > _MORE * most else None,
    )


def race_baselines(entered: Entered, data: Encodings, progress: Progress) -> Rivals:
    """Return the predictions of the baselines for the test split, on all data of the race: texts
    and columns. They are fitted before the plan, which divides the time that is left."""
    progress(RaceProgress("", "fitting baselines"))
    _, rows = predicted_rows(data, entered)
    columns = [entry for entry in entered.entries if entry.table in ("", COLUMNS)]
    texts = [entry for entry in entered.entries if entry.table is None]
    # Hidden states of a pretrained model are only read if there is nothing else.
    readers = [*columns[:1], *texts[:1]] or entered.entries[:1]
    of_data = [rivals(data.of(entry), entered.test, rows) for entry in readers]
    if entered.records is None:
        return of_data[0]
    records = read_record_splits(entered.records, str(entered.config.target), entered.test)
    of_records = tabular_rival(records), tabicl_rival(records)
    return merged([*(each.by_row() for each in of_data), *of_records])


def test_split(splits: Iterable[str]) -> str | None:
    """Return ``test``, or the first split other than train, validation and calibration; None if
    no other split exists.
    """
    further = [name for name in splits if name not in USED]
    return "test" if "test" in further else next(iter(further), None)


def check_varies(where: str, target: str, values: Mapping[str, Floats]) -> None:
    """Raise DataError if a target equals its training median in every row of a split: then skill
    is undefined. ``values`` are the values in each split."""
    median = np.median(values[TRAIN])
    for name, of_split in values.items():
        if (of_split == median).all():
            raise DataError(
                f"{where}: the target {target!r} is {median:g}, the training median, in every row "
                f"of the split {name}. Pass other splits with --split"
            )


def few_rows(shown: str, rows: Sequence[int], test: str) -> list[str]:
    """Return a note if rows are few; raises DataError if they are too few."""
    named = [(TRAIN, rows[0], 0), (VALIDATION, rows[1], 1), (test, rows[2], 1)]
    shown_counts = ", ".join(f"{name} {count:,}" for name, count, _ in named)
    if any(count < LEAST[index] for _, count, index in named):
        raise DataError(
            f"{shown}: too few rows to compare encodings ({shown_counts}). A race needs at least "
            f"{LEAST[0]} rows to train on and {LEAST[1]} in each other split; {FEW[0]} and "
            f"{FEW[1]} give useful results"
        )
    if any(count < FEW[index] for _, count, index in named):
        return [
            f"Few rows ({shown_counts}): expect wide intervals and ties. At least {FEW[0]} rows to "
            f"train on and {FEW[1]} in each other split give better results."
        ]
    return []
