"""A sweep: a grid of data, encodings, trainings and seeds -> reports, and a table a data set.

Data and encodings are made first, one after the other; then the runs (``runs``),
where something is to be chosen on the validation split first (``selection``). All
of it are artifacts, so a sweep that was stopped goes on where it stood, and
shares what it makes with other sweeps and with the commands.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import NamedTuple

import numpy as np

from numtok.data.tables.table import read_table_of
from numtok.encoding.splits import splits
from numtok.errors import NumtokError, unknown
from numtok.evaluation.comparison.seeds import FoldStatistics
from numtok.settings.sweep import Config as Config
from numtok.stages import compare, encode, fetch, gen, table
from numtok.stages.compare import Comparison
from numtok.stages.train import VALIDATION
from numtok.store.artifact import TABLE, Artifact
from numtok.store.engines.engine import LOCAL, connected
from numtok.store.store import Store
from numtok.sweeps.file import read_sweep
from numtok.sweeps.plan import FETCHED, Point, Select, Source, Sweep, Trainings, label_of
from numtok.sweeps.runs import (
    Failed,
    OthersLeft,
    Progress,
    Run,
    Runner,
    Side,
    SweepProgress,
    on_cluster,
    side_by_side,
)
from numtok.sweeps.selection import Choice, Selection

# What sets test sets of one data set apart, and so tables.
_TEST_SETS = ("split", "eval.split", "rows", "eval.rows")


class Average(NamedTuple):
    """One way, by its place on the other axes: each metric over the data sets, and on each.

    A way is what runs share that differ only in the data set, the seed and what was chosen: the
    best ``decoder:ud`` is one, whatever its base was on each data set.
    """

    label: str
    metrics: dict[str, FoldStatistics]
    each: list[dict[str, float | None]]


class Ranking(NamedTuple):
    """Which way is the best on how many data sets, as Demšar (2006) compares classifiers.

    metric
        The metric that ranks them on each data set, the best first (1); equal ways share a rank.
    ways
        Mean and standard deviation of the ranks of each way with a value on all data sets, the best
        first.
    apart
        Two mean ranks that differ by less may do so by chance: the critical difference of Nemenyi's
        test at 5%, for all pairs together.
    """

    metric: str
    data_sets: int
    ways: dict[str, FoldStatistics]
    apart: float


class SweepTable(NamedTuple):
    """The comparison of all runs on one test set, and where on the axes that is."""

    label: str
    comparison: compare.Comparison


class Result(NamedTuple):
    """All of a sweep; ``select`` is what was chosen by, None where nothing was; ``averages`` are
    over the data sets, none where there is one, and so are ``ranks``. Of a part ``left`` says how
    many runs of other parts are not there yet; then nothing is compared."""

    select: Select | None
    choices: list[Choice]
    tables: list[SweepTable]
    averages: list[Average]
    failed: list[Failed]
    left: int = 0
    ranks: Ranking | None = None


def run(config: Config, store: Store, progress: Progress) -> Result:
    """Make whatever of a sweep is not there yet, and compare.

    Raises UsageError for a file that is not understood, StoreError where a worker died; what goes
    wrong with single runs is in the result.
    """
    sweep = read_sweep(Path(config.file), config.changes, config.max_runs)
    with connected(config.engine) as nodes:
        if config.engine == LOCAL:
            side = side_by_side(sweep, config.jobs)
        else:
            side = on_cluster(sweep, config.jobs, config.engine, nodes)
        quiet = Store(
            store.root, lambda note: None, any_name=True
        )  # notes on single runs would be too many
        return _swept(sweep, side, config.part, quiet, progress)


def _swept(sweep: Sweep, side: Side, part: str | None, store: Store, progress: Progress) -> Result:
    failed: list[Failed] = []
    runs = list(_runs(sweep, side.engine, store, progress, failed))
    runner = Runner(root=store.root, side=side, progress=progress, failed=failed, part=part)
    choices: list[Choice] = []
    try:
        if sweep.select is not None:
            runs, choices = Selection(
                sweep=sweep, select=sweep.select, evaluate=runner, store=store, failed=failed
            ).choose(runs)
        reports = runner(runs)
    except OthersLeft as others:
        return Result(
            select=sweep.select,
            choices=[],
            tables=[],
            averages=[],
            failed=failed,
            left=others.count,
        )
    progress(SweepProgress("comparing"))
    tables = []
    for label in dict.fromkeys(run.table for run in runs):
        mine = [run.index for run in runs if run.table == label]
        # Two points may be one experiment, where a default is written out.
        paths = list(dict.fromkeys(reports[index] for index in mine if index in reports))
        if not paths:
            continue
        try:
            compared = replace(sweep.compare, reports=tuple(map(str, paths)))
            tables.append(SweepTable(label, compare.run(compared, store)))
        except NumtokError as error:
            failed.append(Failed(label, error))
    over_data = averages(sweep, runs, reports, [one.comparison for one in tables])
    better = tables[0].comparison.metrics if tables else {}
    ranked = ranks(over_data, better) if over_data else None
    return Result(sweep.select, choices, tables, over_data, failed, ranks=ranked)


def _runs(
    sweep: Sweep, engine: str, store: Store, progress: Progress, failed: list[Failed]
) -> Iterator[Run]:
    """Make the data and encode them; every run that this allows."""
    count = 0
    for data, encoding, artifact, trainings in _data(sweep, engine, store, progress, failed):
        for training, learn in trainings:
            for evaluation, ask in sweep.eval:
                apart = {axis: evaluation[axis] for axis in _TEST_SETS if axis in evaluation}
                apart |= {"fold": training["fold"]} if "fold" in training else {}
                yield Run(
                    index=count,
                    table=label_of({**data, **apart}),
                    point={**data, **encoding, **training, **evaluation},
                    train=replace(learn, data=str(artifact.path)),
                    eval=replace(ask, data=str(artifact.path)),
                )
                count += 1


def _data(
    sweep: Sweep, engine: str, store: Store, progress: Progress, failed: list[Failed]
) -> Iterator[tuple[Point, Point, Artifact, Trainings]]:
    """What runs read, encoded data or tables, where on the axes that is, and how it is learnt."""
    for data, source in sweep.data:
        made: list[tuple[str, ...]] = []
        try:
            progress(SweepProgress(f"data {label_of(data)}".rstrip()))
            for inputs in _made(source, engine, store):
                made.append(inputs)
        except NumtokError as error:
            failed.append(Failed(label_of(data), error))
        for inputs in made:
            place = {**data, FETCHED: inputs[0].partition("@")[0]} if len(made) > 1 else data
            for encoding, how, trainings in _encodings(sweep):
                here = label_of({**place, **encoding})
                try:
                    if how is not None:
                        progress(SweepProgress(f"encoding {here}".rstrip()))
                    artifact = _encoded(how, inputs, engine, store)
                    _check_splits(artifact, sweep)
                except NumtokError as error:
                    failed.append(Failed(here, error))
                    continue
                yield place, encoding, artifact, trainings


def _encodings(sweep: Sweep) -> Iterator[tuple[Point, encode.Config | None, Trainings]]:
    for encodings, trainings in sweep.ways:
        yield from ((point, how, trainings) for point, how in encodings)


def _made(source: Source, engine: str, store: Store) -> Iterator[tuple[str, ...]]:
    """The data of one point, of ``fetch`` maybe several tables."""
    if isinstance(source, fetch.Config):
        for one in fetch.run(source, store, lambda *_: None):
            yield (one.ref,)
    elif isinstance(source, table.Config):
        yield (table.run(source, store).ref,)
    elif isinstance(source, gen.Config):
        yield (gen.run(replace(source, engine=engine), store, lambda *_: None).ref,)
    else:
        yield source


def _encoded(
    how: encode.Config | None, inputs: tuple[str, ...], engine: str, store: Store
) -> Artifact:
    """The artifact that is learnt from; a table as it is."""
    if how is None:
        return store.resolve(inputs[0], {TABLE})
    config = replace(how, inputs=inputs, engine=engine)
    artifact = encode.run(config, store, lambda *_: None).artifact
    assert artifact is not None  # it was no dry run
    return artifact


def _check_splits(artifact: Artifact, sweep: Sweep) -> None:
    """Refuse data without the splits that are asked for now, not after all the training.

    Tables need no VALIDATION: rows are held back for it.
    """
    of_table = artifact.kind == TABLE
    there = read_table_of(artifact).splits() if of_table else list(splits(artifact))
    asked = {one.split for _, one in sweep.eval}
    asked |= {VALIDATION} if sweep.select else set()
    for name in sorted(asked - ({VALIDATION} if of_table else set())):
        if name not in there:
            raise unknown(f"split of {artifact.ref}", name, there)


_LEVEL = 0.05  # of the test of ranks


def averages(
    sweep: Sweep,
    runs: Sequence[Run],
    reports: Mapping[int, Path],
    comparisons: Sequence[Comparison],
) -> list[Average]:
    """Average the ways over data sets, given the runs, their reports by index, and a comparison per
    data set. Ways with values on only one data set are left out, and so are values by group.
    """
    of_data = {axis for point, _ in sweep.data for axis in point} | {FETCHED}
    ways = {}
    for run in runs:
        if (folder := reports.get(run.index)) is not None:
            way = {axis: value for axis, value in sweep.shared(run.point) if axis not in of_data}
            ways[f"{folder.parent.name}@{folder.name}"] = label_of(way)
    found: dict[str, list[dict[str, float | None]]] = {}  # on each data set
    for comparison in comparisons:
        part = comparison.parts[0]
        for experiment in comparison.experiments if part.value is None else ():
            standings = part.standings[experiment.label]
            values = {metric: standing.figure.value for metric, standing in standings.items()}
            found.setdefault(ways[experiment.reports[0]], []).append(values)
    # Which metrics a comparison has, its data decide; what one of them lacks is undefined.
    metrics = list(dict.fromkeys(chain.from_iterable(chain.from_iterable(found.values()))))
    return [
        Average(
            label,
            {metric: FoldStatistics.of([one.get(metric) for one in figures]) for metric in metrics},
            figures,
        )
        for label, figures in found.items()
        if len(figures) > 1
    ]


def ranks(ways: Sequence[Average], better: Mapping[str, str]) -> Ranking | None:
    """Rank the ways by the first metric with a ``better`` direction; None unless at least two ways
    have a value on all data sets."""
    from scipy.stats import rankdata, studentized_range  # takes half a second

    metric = next((metric for metric, which in better.items() if which != "neither"), None)
    count = max((len(one.each) for one in ways), default=0)
    if metric is None:
        return None
    figures = {one.label: [on.get(metric) for on in one.each] for one in ways}
    whole = {
        label: values
        for label, values in figures.items()
        if len(values) == count and None not in values
    }
    if len(whole) < 2:
        return None
    of_each = np.array(list(whole.values()), np.float64)  # [ways, data sets]
    order = -of_each if better[metric] == "higher" else of_each
    ranked = rankdata(order, axis=0)
    found = {label: FoldStatistics.of(of.tolist()) for label, of in zip(whole, ranked, strict=True)}
    best_first = sorted(found.items(), key=lambda one: one[1].mean or 0.0)
    many = len(whole)
    studentized = float(studentized_range.ppf(1 - _LEVEL, many, np.inf)) / math.sqrt(2)
    apart = studentized * math.sqrt(many * (many + 1) / (6 * count))
    return Ranking(metric, count, dict(best_first), apart)
