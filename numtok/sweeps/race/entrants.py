"""Prepare the data of a race: profile it, split it, and encode it for each candidate.

Texts are encoded with the scheme of each candidate. A table is not encoded; all candidates train on
the same table artifact.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from numtok.data.reading.sources import find_sources
from numtok.data.reading.split_rule import TRAIN
from numtok.data.reading.streams import Spool, is_stream
from numtok.data.tables.columns import SPLIT_COLUMN
from numtok.data.tables.file import FORMATS, parsed, read_file
from numtok.data.tables.table import VALIDATION, learnt_rows, read_table_of, twin_notes
from numtok.declaration import settings_in
from numtok.encoding.splits import read_split
from numtok.errors import DataError, NumtokError, UsageError, meaningless, unknown
from numtok.evaluation.fields import LEAST as LEAST_OF_FIELD
from numtok.evaluation.intervals import USED
from numtok.models.presets import preset, trunk
from numtok.settings.race import Config
from numtok.stages import encode, profile, table
from numtok.store.artifact import TABLE, Artifact
from numtok.store.quota import Quota
from numtok.store.store import Store
from numtok.sweeps.race.candidates import (
    Entrant,
    Verdict,
    judged,
    judged_heads,
    table_entries,
    text_entries,
)
from numtok.sweeps.race.plan import Progress, RaceProgress
from numtok.sweeps.race.splitting import SHARES, TimeSplit, split_of_columns, split_of_texts
from numtok.sweeps.race.words import FieldSummary
from numtok.training.trained_table import FittingRecipe, held_back

#: Rows of the train split, and of each other split: fewer raise an error, or give a warning.
LEAST, FEW = (40, 10), (200, 30)
_PREDICTED = 2_000  # numbers of the validation split that are predicted, at most
_MORE = 5  # times as many of the test split
_MOST_NAMED = 5  # fields in a message


@dataclass(frozen=True, kw_only=True)
class Entered:
    """The data of a race, and the candidates that may take part.

    of_table
        True if the data is a table.
    split
        The rule by which rows were split, in the syntax of ``--split``; None if the data is already
        split.
    test
        The split that the last round evaluates in addition to validation.
    rows
        Numbers of rows in the train, validation and test splits.
    """

    name: str
    of_table: bool
    fields: list[FieldSummary]
    verdicts: list[Verdict]
    entries: list[Entrant]
    split: str | None
    test: str
    rows: tuple[int, int, int]
    notes: list[str]
    table: Artifact | None = None


def is_table(config: Config, store: Store) -> bool:
    """Return whether the data is a table: a CSV file, a Parquet file with a target, or the REF of a
    table.

    Raises UsageError if a table is one of several inputs.
    """
    first = config.inputs[0]
    file = Path(first).is_file() and first.endswith(FORMATS)
    if file and (first.endswith(".csv") or config.target is not None):
        tabular = True
    else:
        tabular = not Path(first).exists() and _is_table_ref(first, store)
    if tabular and len(config.inputs) > 1:
        raise UsageError(f"{first} is a table and cannot be combined with other inputs")
    return tabular


def _is_table_ref(ref: str, store: Store) -> bool:
    try:
        store.resolve(ref, {TABLE})
    except NumtokError:  # reading it as texts reports the error
        return False
    return True


# --- texts -------------------------------------------------------------------------------------


def enter_texts(config: Config, store: Store, progress: Progress) -> Entered:
    """Profile texts, and return them with their candidates.

    Raises UsageError if a setting does not apply to the texts, and DataError if the texts have no
    numbers to predict or too few rows.
    """
    if config.preset is not None:
        preset(config.preset)
    _refuse(config, ("drop",), "texts")
    rule, name, split_notes = _rule(config, store)
    progress(RaceProgress("", "reading the data"))
    profiled = profile.run(
        profile.Config(
            config.inputs,
            schemes=config.schemes,
            split=rule,
            numerals=config.numerals,
            not_numbers=config.not_numbers,
            text_field=config.text_field,
            on_error=config.on_error,
            engine=config.engine,
        ),
        store,
        lambda what, done, total, rows: progress(RaceProgress("", what, done, total)),
    )
    shown = ", ".join(config.inputs)
    if not profiled.numbers:
        raise DataError(
            ". ".join(
                [
                    f"{shown}: none of the {profiled.rows:,} rows has a number; a race needs "
                    "numbers to predict",
                    *profiled.notes,
                ]
            )
        )
    if rule is not None and config.split is None:  # else the user chose the splits
        _few(shown, _counted(profiled.splits, "test"), "test")
    test = _test_split(shown, profiled.splits, rule)
    rows = _counted(profiled.splits, test)
    _check_targets(shown, profiled, config.target)
    verdicts = judged(profiled, config.schemes)
    notes = [*profiled.notes, *split_notes]
    return Entered(
        name=config.name or f"{name}-race",
        of_table=False,
        fields=[FieldSummary.of_profile(field) for field in profiled.fields],
        verdicts=verdicts,
        entries=text_entries(profiled, verdicts),
        split=rule,
        test=test,
        rows=rows,
        notes=notes + _few(shown, rows, test),
    )


def _counted(splits: Mapping[str, int], test: str) -> tuple[int, int, int]:
    """Return the number of rows of the train, validation and test split."""
    return splits.get(TRAIN, 0), splits.get(VALIDATION, 0), splits.get(test, 0)


def _rule(config: Config, store: Store) -> tuple[str | None, str, list[str]]:
    """Return the split of rows whose input names none, a name for the data, and notes on the
    split."""
    for name in config.inputs:
        if is_stream(name.partition("=")[2] or name) or is_stream(name):
            raise UsageError(
                f"{name} can be read only once, but a race reads its data once per scheme. Pass a "
                "file"
            )
    spool = Spool(_no_folder, Quota.parse(None))
    sources, name = find_sources(config.inputs, store.resolve, lambda note: None, spool)
    if config.split is not None or all(source.split is not None for source in sources):
        return config.split, name, []
    by_time = split_of_texts(sources, config.text_field, config.on_error == "skip")
    return by_time.rule or SHARES, name, by_time.notes


def _no_folder() -> Path:
    raise AssertionError("only streams are spooled, and they are refused")


def _test_split(shown: str, splits: Mapping[str, int], rule: str | None) -> str:
    """Return the split that texts are tested on. Raises DataError if one of the three splits is
    missing."""
    test = _tested(splits)
    if TRAIN in splits and VALIDATION in splits and test is not None:
        return test
    lacking = [name for name in (TRAIN, VALIDATION) if name not in splits]
    lacking += [] if test else ["test"]
    remedy = "Leave out --split" if rule else f"Pass files without split= (--split {SHARES})"
    raise DataError(
        f"{shown}: no row is in the split{'s' * (len(lacking) > 1)} {' or '.join(lacking)} (found: "
        f"{', '.join(splits)}). A race trains on {TRAIN}, selects on {VALIDATION} and reports on "
        f"test. {remedy}"
    )


def _tested(splits: Iterable[str]) -> str | None:
    """Return ``test``, or the first split other than train, validation and calibration; None if
    no other split exists.
    """
    further = [name for name in splits if name not in USED]
    return "test" if "test" in further else next(iter(further), None)


class Encodings:
    """The artifacts that candidates train on.

    Texts are encoded with a scheme only when a candidate first needs it, so candidates that are
    left out for lack of time cost nothing. A table is shared by all candidates.
    """

    def __init__(self, config: Config, entered: Entered, store: Store, progress: Progress) -> None:
        self._config, self._entered, self._store = config, entered, store
        self._progress = progress
        self._artifacts: dict[tuple[str, str | None], Artifact] = {}

    def of(self, entry: Entrant) -> Artifact:
        """Return the artifact that a candidate trains on, after encoding the texts if necessary."""
        if self._entered.table is not None:
            return self._entered.table
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


def predicted_rows(data: Artifact, entered: Entered) -> tuple[int | None, int | None]:
    """Return the numbers of rows to predict in the validation split and in the test split; None for
    all rows.

    A text is predicted once for each of its numbers, so fewer rows are predicted if rows contain
    many numbers.
    """
    if data.kind == TABLE:
        return None, None
    samples = read_split(data, VALIDATION)
    predictions = len(samples.targets) or len(samples.numbers)
    per_row = max(1.0, predictions / len(samples))
    most = max(LEAST_OF_FIELD, int(_PREDICTED / per_row))
    _, validation, test = entered.rows
    return (
        most if validation > most else None,
        _MORE * most if test > _MORE * most else None,
    )


def _check_targets(shown: str, profiled: profile.Profile, target: str | None) -> None:
    """Raise UsageError for a target that no row of the train split has, and DataError for numbers
    to predict that are constant."""
    if target is not None and not profiled.targets:
        raise meaningless("target", "rows that have no targets")
    if target is not None and target not in profiled.targets:
        raise unknown("target", target, profiled.targets)
    ranges = {field.name: (field.low, field.high) for field in profiled.fields}
    if profiled.targets:
        ranges = {name: ends for name, ends in profiled.targets.items() if target in (None, name)}
    if all(low == high is not None for low, high in ranges.values()):
        names = ", ".join(list(ranges)[:_MOST_NAMED])
        raise DataError(
            f"{shown}: all numbers to predict are constant ({names}). Pass data in which they vary"
        )


# --- tables ------------------------------------------------------------------------------------


def enter_table(config: Config, store: Store, progress: Progress) -> Entered:
    """Read a table, and return it with its candidates.

    Raises UsageError if a setting does not apply to the table or the target column is unknown, and
    DataError if the table has too few rows or a constant target.
    """
    if config.preset is not None:
        trunk(config.preset)
    _refuse(config, ("numerals", "not_numbers", "text_field"), "a table")
    progress(RaceProgress("", "reading the table"))
    artifact, table_notes = _table(config, store)
    rows_of = read_table_of(artifact)
    file, splits = rows_of.file, rows_of.splits(0)
    test = _tested(splits)
    if TRAIN not in splits or test is None:
        raise DataError(
            f"{artifact.ref} has the splits {', '.join(splits)}, but a race needs {TRAIN} and "
            "test. Make the table with both"
        )
    train = learnt_rows(rows_of, 0, None, 0)
    median = np.median(rows_of.target[train])
    for name in filter(splits.__contains__, dict.fromkeys([TRAIN, VALIDATION, test])):
        if (rows_of.target[rows_of.split(name)] == median).all():
            raise DataError(
                f"{artifact.ref}: the target {file.target!r} is {median:g}, the training median, "
                f"in every row of the split {name}. Pass other splits with --split"
            )
    field = FieldSummary.of_column(file.target, rows_of.target[train])
    verdicts = judged_heads(config.schemes)
    if VALIDATION in splits:
        fitted, validation = len(train), len(rows_of.split(VALIDATION))
    else:  # each training run holds rows back
        recipe = FittingRecipe()
        parts = held_back(len(train), recipe.validation, recipe.seed)
        fitted, validation = map(len, parts)
    rows = fitted, validation, len(rows_of.split(test))
    few = _few(artifact.ref, rows, test)
    notes = [*table_notes, *file.notes, *few, *twin_notes(rows_of, [test])]
    return Entered(
        name=config.name or f"{artifact.name}-race",
        of_table=True,
        fields=[field],
        verdicts=verdicts,
        entries=table_entries(field, verdicts),
        split=None,
        test=test,
        rows=rows,
        notes=notes,
        table=artifact,
    )


def _table(config: Config, store: Store) -> tuple[Artifact, list[str]]:
    """Return the table, and notes on how it was made."""
    path = config.inputs[0]
    if not Path(path).is_file():
        of_file = "target", "split", "drop", "on_error"
        _refuse(config, of_file, f"{path}, a stored table: numtok table sets it")
        return store.resolve(path, {TABLE}), []
    content = parsed(path, read_file(Path(path)))
    if config.target is None:
        raise UsageError(
            f"{path} is a table and needs a column to predict. Pass --target, one of "
            f"{', '.join(content.column_names)}"
        )
    by_time, dates = split_of_columns(content, config.target)
    has_splits = any(SPLIT_COLUMN.fullmatch(name) for name in content.column_names)
    if has_splits or config.split is not None:
        by_time = TimeSplit(None)
    split = config.split or by_time.rule
    drop = tuple(dict.fromkeys([*config.drop, *dates]))
    settings = table.Config(
        path, target=config.target, split=split, drop=drop, on_error=config.on_error
    )
    return table.run(settings, store).artifact, [*by_time.notes, *_dropped(dates)]


def _refuse(config: Config, names: Sequence[str], data: str) -> None:
    """Raise UsageError for the first named setting that is not at its default, since it would be
    ignored for ``data``."""
    for key, setting in settings_in(type(config)).items():
        if key in names and getattr(config, key) != setting.default:
            raise meaningless(setting.flag, data)


def _dropped(dates: Sequence[str]) -> list[str]:
    if not dates:
        return []
    return [f"{', '.join(map(repr, dates))}: left out, since dates cannot be features."]


def _few(shown: str, rows: Sequence[int], test: str) -> list[str]:
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
