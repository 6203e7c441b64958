"""Which candidates are the best, by their figures on the validation split and nothing else.

Candidates differ in the axes that are chosen over; a group is what they share.
The mean over seeds, all or some of them, decides.

Where a figure is to be reached this is successive halving: all candidates of a
group train at the smallest budget, the better half of them at the next, each
anew and with a schedule of its own, until the best one is good enough. What that
one cost is what it costs to get there, once one knows how.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

from numtok.errors import DataError
from numtok.evaluation.comparison.experiments import ExperimentCosts, costs_of
from numtok.evaluation.report_files import Evaluation, ReportPredictions, check_measures, read
from numtok.metrics.base import METRICS
from numtok.registry import spec_of
from numtok.reports import REPORT
from numtok.stages.train import VALIDATION
from numtok.store.store import Store
from numtok.sweeps.plan import Select, Shared, Sweep, label_of
from numtok.sweeps.runs import Failed, Run

#: Does runs, and gives the report of each by its index.
Evaluate = Callable[[Sequence[Run]], Mapping[int, Path]]


class Choice(NamedTuple):
    """The best candidate of a group: what the group shares, what was chosen, its figure.

    ``figure`` is the mean over the seeds that decide, on the validation split; ``chosen``,
    ``figure`` and ``costs`` are None where no candidate has one. ``reached`` is None where nothing
    was to be reached.
    """

    group: str
    chosen: str | None
    figure: float | None
    reached: bool | None
    costs: ExperimentCosts | None


class _Candidate(NamedTuple):
    """Runs that differ only in the seed, and how they did on the validation split."""

    runs: list[Run]
    evaluations: list[Evaluation]
    figure: float


@dataclass(frozen=True, kw_only=True)
class Selection:
    """Chooses among the runs of a sweep."""

    sweep: Sweep
    select: Select
    evaluate: Evaluate
    store: Store
    failed: list[Failed]  # what has no figure to choose by is added

    def choose(self, runs: Sequence[Run]) -> tuple[list[Run], list[Choice]]:
        """The runs to evaluate on the split of the report, and how they were chosen."""
        groups = _grouped(self._deciding(runs), lambda run: self.sweep.shared(run.point))
        best: dict[Shared, _Candidate] = {}
        for budget in sorted({self._budget(run) for run in runs}):
            waiting = {
                shared: [run for run in group if self._budget(run) == budget]
                for shared, group in groups.items()
                if not self._reached(best.get(shared))
            }
            if not waiting:
                break
            for shared, ranked in self._ranked(waiting).items():
                better = {self._place(one.runs[0]) for one in ranked[: -(-len(ranked) // 2)]}
                groups[shared] = [run for run in groups[shared] if self._place(run) in better]
                if ranked:
                    best[shared] = ranked[0]
        seeds = _grouped(runs, self._way)
        chosen = [run for one in best.values() for run in seeds[self._way(one.runs[0])]]
        return chosen, [self._choice(shared, best.get(shared)) for shared in groups]

    def _deciding(self, runs: Sequence[Run]) -> Sequence[Run]:
        """Those of the seeds that decide."""
        if self.select.seeds is None or not self.sweep.seeds:
            return runs
        [axis] = self.sweep.seeds
        first = list(dict.fromkeys(run.point.get(axis) for run in runs))[: self.select.seeds]
        return [run for run in runs if run.point.get(axis) in first]

    def _way(self, run: Run) -> Shared:
        """Where a run stands on all axes but that of seeds."""
        return tuple(one for one in run.point.items() if one[0] not in self.sweep.seeds)

    def _budget(self, run: Run) -> tuple[float, ...]:
        return tuple(float(run.point[axis]) for axis in self.sweep.climbed)

    def _place(self, run: Run) -> Shared:
        """Where a run stands among the candidates of its group."""
        return tuple((axis, run.point[axis]) for axis in self.select.over)

    def _ranked(self, groups: Mapping[Shared, Sequence[Run]]) -> dict[Shared, list[_Candidate]]:
        """Do all runs; the candidates of each group that have a figure, the best first."""
        runs = [run for group in groups.values() for run in group]
        there = self.evaluate(
            [replace(run, eval=replace(run.eval, split=VALIDATION)) for run in runs]
        )
        found = {index: read(self.store.resolve(str(at), {REPORT})) for index, at in there.items()}
        ranked = {}
        for shared, group in groups.items():
            candidates = _grouped(group, self._place).values()
            measured = [one for each in candidates if (one := self._measured(each, found))]
            ranked[shared] = sorted(measured, key=lambda one: self._badness(one.figure))
        return ranked

    def _measured(self, runs: list[Run], found: Mapping[int, Evaluation]) -> _Candidate | None:
        """None where a seed has failed or has no figure."""
        metric = METRICS.build(self.select.metric)
        there = [(run, found[run.index]) for run in runs if run.index in found]
        values = []
        for run, one in there:
            check_measures([metric], one.report.measures, one.ref)
            answers = ReportPredictions.read(one).answers
            if why := metric.why_undefined(answers):
                told = f"{one.ref} is not chosen: no {spec_of(metric)}, since {why}"
                self.failed.append(Failed(label_of(run.point), DataError(told)))
                continue
            values.append(metric.plain(answers))
        if len(values) < len(runs):
            return None
        return _Candidate(runs, [one for _, one in there], sum(values) / len(values))

    def _badness(self, figure: float) -> float:
        return -figure if METRICS.build(self.select.metric).better == "higher" else figure

    def _reached(self, best: _Candidate | None) -> bool:
        if self.select.reach is None or best is None:
            return False
        return self._badness(best.figure) <= self._badness(self.select.reach)

    def _choice(self, shared: Shared, best: _Candidate | None) -> Choice:
        group = label_of(dict(shared))
        reached = None if self.select.reach is None else self._reached(best)
        if best is None:
            return Choice(group, None, None, reached, None)
        point = best.runs[0].point
        chosen = {axis: point[axis] for axis in (*self.select.over, *self.sweep.climbed)}
        return Choice(group, label_of(chosen), best.figure, reached, costs_of(best.evaluations))


def _grouped(runs: Iterable[Run], key: Callable[[Run], Shared]) -> dict[Shared, list[Run]]:
    groups: dict[Shared, list[Run]] = {}
    for run in runs:
        groups.setdefault(key(run), []).append(run)
    return groups
