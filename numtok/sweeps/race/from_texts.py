"""Races on texts: their profile, their splits, and the schemes that suit their numbers."""

from collections.abc import Mapping
from pathlib import Path

from numtok.data.reading.sources import find_sources
from numtok.data.reading.split_rule import TRAIN
from numtok.data.reading.streams import Spool, is_stream
from numtok.data.tables.table import VALIDATION
from numtok.errors import DataError, UsageError, meaningless, unknown
from numtok.models.presets import preset
from numtok.row import TEXT
from numtok.setting_scope import refuse
from numtok.settings.race import Config
from numtok.stages import profile
from numtok.store.quota import Quota
from numtok.store.store import Store
from numtok.sweeps.race.candidates import judged, text_entries
from numtok.sweeps.race.entrants import Entered, few_rows, test_split
from numtok.sweeps.race.plan import Progress, RaceProgress
from numtok.sweeps.race.splitting import SHARES, split_of_texts
from numtok.sweeps.race.words import FieldSummary

_MOST_NAMED = 5  # fields in a message


def enter_texts(
    config: Config, store: Store, progress: Progress, rendered_from: str | None = None
) -> Entered:
    """Profile texts, and return them with their candidates.

    ``rendered_from`` is the file of records that the texts were rendered from, with splits.
    Raises UsageError if a setting does not apply to the texts, and DataError if the texts have no
    numbers to predict or too few rows.
    """
    if config.preset is not None:
        preset(config.preset)
    refuse(config, ("fields", "drop", "models"), "rows that are texts")
    rule, name, split_notes = _rule(config, store, rendered_from is not None)
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
        target=None if rendered_from is None else config.target,
        # Other fields of records may be many, and their columns are described already.
        only_target=rendered_from is not None,
    )
    shown = rendered_from or ", ".join(config.inputs)
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
        few_rows(shown, _counted(profiled.splits, "test"), "test")
    test = _checked_test(shown, profiled.splits, rule)
    rows = _counted(profiled.splits, test)
    _check_targets(shown, profiled, config.target)
    verdicts = judged(profiled, config.schemes)
    notes = [*profiled.notes, *split_notes]
    return Entered(
        name=config.name or f"{name}-race",
        kind="rows of text",
        config=config,
        text_preset=config.preset,
        fields=[FieldSummary.of_profile(field) for field in profiled.fields],
        verdicts=verdicts,
        entries=text_entries(profiled, verdicts),
        split=rule,
        test=test,
        rows=rows,
        notes=notes + few_rows(shown, rows, test),
    )


def _counted(splits: Mapping[str, int], test: str) -> tuple[int, int, int]:
    """Return the number of rows of the train, validation and test split."""
    return splits.get(TRAIN, 0), splits.get(VALIDATION, 0), splits.get(test, 0)


def _rule(config: Config, store: Store, has_splits: bool) -> tuple[str | None, str, list[str]]:
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
    if (
        has_splits
        or config.split is not None
        or all(source.split is not None for source in sources)
    ):
        return config.split, name, []
    by_time = split_of_texts(sources, config.text_field or TEXT, config.on_error == "skip")
    return by_time.rule or SHARES, name, by_time.notes


def _no_folder() -> Path:
    raise AssertionError("only streams are spooled, and they are refused")


def _checked_test(shown: str, splits: Mapping[str, int], rule: str | None) -> str:
    """Return the split that texts are tested on. Raises DataError if one of the three splits is
    missing."""
    test = test_split(splits)
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
