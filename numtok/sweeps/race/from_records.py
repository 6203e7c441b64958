"""Races on the records of a file: heads on their columns, and encodings of the rendered rows.

All candidates predict the same rows. Columns of numbers, categories and dates form a table; the
fields of a record, written as text, are the rows of the text models.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
import pyarrow.parquet as pq

from numtok.arrays import Floats
from numtok.data.reading.sources import CSV
from numtok.data.reading.split_rule import TRAIN
from numtok.data.records import rendering
from numtok.data.records.reader import Records, read_records
from numtok.data.records.splits import has_splits
from numtok.data.tables.table import read_table_of
from numtok.encoding.model_folder import PREFIX
from numtok.encoding.schemes.base import SCHEMES
from numtok.errors import NumtokError, UsageError
from numtok.evaluation.record_splits import target_values
from numtok.evaluation.tabicl_rival import check_tabicl
from numtok.models.heads.base import HEADS
from numtok.models.presets import preset, trunk
from numtok.models.pretrained.frozen import FrozenSource
from numtok.numerals.policy import NumeralPolicy
from numtok.registry import name_in
from numtok.settings.race import Config
from numtok.stages import features, table
from numtok.store.artifact import Artifact
from numtok.store.store import Store
from numtok.sweeps.race.candidates import (
    COLUMNS,
    Verdict,
    judged_heads,
    merged_entries,
    table_entries,
)
from numtok.sweeps.race.entrants import Entered, check_varies
from numtok.sweeps.race.from_texts import enter_texts
from numtok.sweeps.race.plan import Progress, RaceProgress
from numtok.sweeps.race.splitting import SHARES, split_of_records
from numtok.sweeps.race.words import FieldSummary

#: Heads that compete on the states of a pretrained model by default.
_HEADS_ON_STATES = ("pointwise", "mdn:5", "riemann:256")


def is_records(config: Config) -> bool:
    """Return whether the data is a file of records with a target in a field of its own.

    Raises UsageError if a CSV file comes without a target.
    """
    path = config.inputs[0]
    if config.target is not None:
        return rendering.has_target(config.inputs, config.target)
    if rendering.is_records(config.inputs) and path.endswith(CSV):
        names = ", ".join(filter(None, read_records(path).names))
        raise UsageError(
            f"{path} is a table and needs a column to predict. Pass --target, one of {names}"
        )
    return False


def enter_records(config: Config, store: Store, progress: Progress) -> Entered:
    """Read a file of records, and return its data with the candidates.

    A dry run keeps nothing in the store. Raises UsageError if a setting does not apply or a field
    is unknown, and DataError if rows or targets cannot be used.
    """
    if config.dry_run:
        with store.scratch() as scratch:
            return _entered(config, scratch, progress)
    return _entered(config, store, progress)


def _entered(config: Config, store: Store, progress: Progress) -> Entered:
    progress(RaceProgress("", "reading the file"))
    check_tabicl()
    for model in config.models:
        FrozenSource.of(model)  # raises an error before the file is read
    rendering.check_decimals(NumeralPolicy.parse(config.numerals or "default"))
    path, name = config.inputs[0], str(config.target)
    records = read_records(path, skip=config.on_error == "skip")
    rule, split_notes = _split(config, records, name)
    text_preset, table_preset = _presets(config.preset)
    schemes, heads = _named(config.schemes)
    settings = replace(config, split=rule, schemes=tuple(schemes), preset=text_preset, models=())
    rendered = rendering.run(settings, store, records)
    texts = rendering.reading(settings, rendered)
    entered = enter_texts(texts, store, progress, rendered_from=path)
    check_varies(path, name, _targets_by_split(rendered.artifact, name))
    verdicts, entries = entered.verdicts, entered.entries
    if config.schemes and not schemes:
        verdicts, entries = [], []
    tables: dict[str, Artifact] = {}
    inputs = []
    if config.text_field is None:  # else no other field is read
        inputs = [each for each in rendered.template.fields if records.columns[each].is_feature]
    if inputs and (heads or not config.schemes):
        columns = table.Config(
            path, target=name, split=rule, features=tuple(inputs), on_error=config.on_error
        )
        tables[COLUMNS] = table.run(columns, store, records).artifact
    tables |= _pretrained(config, rendered.artifact, store, progress)
    for label, artifact in tables.items():
        rows = read_table_of(artifact)
        target = FieldSummary.of_column(name, rows.target[rows.split(TRAIN)])
        judged = judged_heads(heads if label == COLUMNS else heads or _HEADS_ON_STATES)
        verdicts = [*_renamed(judged, label), *verdicts]
        entries = merged_entries(entries, table_entries(target, judged, label))
    if heads and not entries:
        raise UsageError(
            f"{path} has no column of numbers, categories or dates besides the target, "
            f"so {', '.join(heads)} cannot race. Name schemes for texts: --schemes"
        )
    return replace(
        entered,
        kind="records",
        fields=[field for field in entered.fields if field.name == name],
        verdicts=verdicts,
        entries=entries,
        records=rendered.artifact,
        tables=tables,
        columns=list(_described(records, rendered.template.fields, inputs, name)),
        features=inputs,
        text_only=[each for each in rendered.template.fields if each not in inputs],
        text_preset=text_preset,
        table_preset=table_preset,
        notes=[*rendered.notes, *split_notes, *entered.notes, *_unplanned(config)],
    )


def _split(config: Config, records: Records, target: str) -> tuple[str | None, list[str]]:
    """Return the split rule, and notes on whether rows are split by time. The rule is None if the
    file has a column of splits."""
    other = (target, *config.fields, *config.drop, config.text_field)
    if config.split is not None or has_splits(records, other):
        return config.split, []
    time_split = split_of_records(records, target)
    return time_split.rule or SHARES, time_split.notes


def _targets_by_split(rows: Artifact, target: str) -> dict[str, Floats]:
    """Return the values of a target in each split of rendered rows."""
    table = pq.read_table(rows.path / rendering.ROWS, columns=["text", "targets", "split"])
    values, splits = target_values(table, target), np.array(table["split"].to_pylist())
    return {name: values[splits == name] for name in np.unique(splits).tolist()}


def _presets(spec: str | None) -> tuple[str | None, str | None]:
    """Return the chosen preset for texts and for tables; a spec is one of the two."""
    if spec is None:
        return None, None
    try:
        preset(spec)
    except UsageError:
        trunk(spec)
        return None, spec
    return spec, None


def _named(specs: Sequence[str]) -> tuple[list[str], list[str]]:
    """Divide specs into schemes for texts and heads for columns. A spec may be both."""
    schemes = [spec for spec in specs if name_in(spec) in SCHEMES]
    heads = [spec for spec in specs if _is_head(spec)]
    unknown = [spec for spec in specs if spec not in schemes and spec not in heads]
    return [*schemes, *unknown], heads  # the text side reports unknown names


def _is_head(spec: str) -> bool:
    if name_in(spec) not in HEADS:
        return False
    try:
        return judged_heads([spec])[0].takes_part
    except NumtokError:
        return name_in(spec) not in SCHEMES


def _renamed(verdicts: Sequence[Verdict], table: str) -> Iterator[Verdict]:
    for verdict in verdicts:
        yield Verdict(f"{verdict.scheme} on {table}", verdict.takes_part, verdict.reason)


def _pretrained(
    config: Config, rows: Artifact, store: Store, progress: Progress
) -> Iterator[tuple[str, Artifact]]:
    """Yield a table of hidden states for each pretrained model, with its label."""
    if config.dry_run:
        return
    for model in config.models:
        progress(RaceProgress("", f"hidden states of {model}"))
        settings = features.Config(
            (str(rows.path),),
            model=model.removeprefix(PREFIX),
            target=config.target,
            device=config.device,
        )
        made = features.run(settings, store, lambda *state: progress(RaceProgress("", *state)))
        yield model.rstrip("/").rpartition("/")[2].removeprefix(PREFIX), made.artifact


def _unplanned(config: Config) -> Iterator[str]:
    """Yield a note for each pretrained model that a dry run does not load."""
    for model in config.models if config.dry_run else ():
        yield (
            f"Heads on the hidden states of {model} also race. They are not listed, because a dry "
            "run does not compute the states, which takes minutes."
        )


def _described(
    records: Records, fields: Sequence[str], features: Sequence[str], target: str
) -> Iterator[str]:
    for name, column in records.columns.items():
        reason = f" ({column.reason})" if column.reason else ""
        use = "target" if name == target else "left out"
        if name in features:
            use = "read by all candidates"
        elif name in fields:
            use = "read by text models only"
        advice = f": {column.advice}" if column.advice and use.startswith("read") else ""
        yield f"{name or 'a column without a name'}: {column.kind}{reason}; {use}{advice}"
