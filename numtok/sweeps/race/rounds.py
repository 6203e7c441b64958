"""The rounds of a race: the remaining candidates train for the same time, and the best third
advances."""

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import msgspec

from numtok.evaluation.report_files import Evaluation, ReportPredictions, read
from numtok.evaluation.rivals import Rivals
from numtok.reports import REPORT
from numtok.settings.race import Config
from numtok.stages.train import VALIDATION
from numtok.store.artifact import Artifact
from numtok.store.engines.engine import Engine
from numtok.store.store import Store
from numtok.sweeps.parallel import Parallelism
from numtok.sweeps.race.leaderboard import Finalist, Leaderboard, leaderboard
from numtok.sweeps.race.plan import Candidate, CandidateState, Plan, Progress, RaceProgress, Round
from numtok.sweeps.race.run_settings import evaluating, training
from numtok.sweeps.race.skill import score
from numtok.sweeps.runs import Failed, Run, Runner, RunOutcome


class RoundResult(msgspec.Struct, frozen=True, kw_only=True):
    """Results of a round on the validation split, keyed by the label of the candidate.

    steps
        Steps (or epochs) of each candidate at each of its learning rates.
    tried
        Skill over the median of the field, keyed by the learning rate as a string; failed runs are
        missing.
    rates, skills, reports
        The best learning rate, its skill (None if every run failed), and the REF of its report.
    """

    seconds: float
    steps: dict[str, int]
    tried: dict[str, dict[str, float]]
    rates: dict[str, float]
    skills: dict[str, float | None]
    reports: dict[str, str]


class RoundsOutcome(NamedTuple):
    """Results of all rounds, and leaderboards on the validation and the test split.

    validation
        Leaderboard of the finalists that decides the winner, with the median as the only baseline.
    test
        Leaderboard of the finalists and all baselines. Nothing else uses the test split.
    """

    rounds: list[RoundResult]
    validation: Leaderboard
    test: Leaderboard


class _Trial(NamedTuple):
    """A finished training run and its score."""

    rate: float
    skill: float
    evaluation: Evaluation


@dataclass(kw_only=True, eq=False)
class RaceEntry:
    """A candidate during the race.

    reached
        Number of the last round in which it trained, starting at 1; 0 before the first.
    skill
        Best skill in that round; None before it is scored, or if every run failed.
    rate
        Learning rate that it keeps after its first round.
    trials, pending
        Finished runs of the current round, and the number of unfinished ones.
    """

    index: int
    candidate: Candidate
    state: str = "waiting"
    reached: int = 0
    skill: float | None = None
    steps: int = 0
    rate: float | None = None
    trials: list[_Trial] = field(default_factory=list)
    pending: int = 0

    def start(self, number: int, steps: int) -> None:
        """Enter the round ``number``, in which the candidate trains for ``steps`` steps."""
        self.reached, self.steps, self.skill, self.state = number, steps, None, "waiting"

    def keep_best_rate(self) -> _Trial | None:
        """Keep the learning rate of the best trial, and return that trial. In a tie, the rate that
        the plan lists first wins."""
        self.trials.sort(key=lambda trial: self.candidate.rates.index(trial.rate))
        best = max(self.trials, key=lambda trial: trial.skill, default=None)
        if best is not None:
            self.rate = best.rate
        return best


def ranked(entries: Sequence[RaceEntry]) -> list[RaceEntry]:
    """Return the scored entries, best first: sorted by the last round they reached, then by their
    skill in that round.

    Skills in different rounds are not comparable, since later rounds train longer. Eliminated
    entries come after the survivors, so one is readmitted only if a survivor fails.
    """
    scored = [entry for entry in entries if entry.skill is not None]
    return sorted(scored, key=lambda entry: (-entry.reached, -(entry.skill or 0.0)))


@dataclass(kw_only=True)
class Rounds:
    """Runs all rounds of a race according to its plan.

    baselines
        Predictions of the baselines for the test split, which only the last leaderboard uses; None
        for only the median.
    records
        Rendered rows, if the data are records: models of texts and of tables predict the same
        rows, one number per row.
    """

    config: Config
    plan: Plan
    data: Mapping[str, Artifact]
    store: Store
    parallel: Parallelism
    progress: Progress
    baselines: Rivals | None = None
    records: Artifact | None = None
    replan: Callable[[int, Round, float], Sequence[Round]] | None = None
    failed: list[Failed] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._entries = [
            RaceEntry(index=index, candidate=candidate)
            for index, candidate in enumerate(self.plan.candidates)
        ]

    def run(self) -> RoundsOutcome:
        """Run all rounds, and return their results. The same worker processes are used
        throughout."""
        with self.parallel.workers(self.store.spool) as engine:
            return self._run(engine)

    def _run(self, engine: Engine) -> RoundsOutcome:
        rounds = [*self.plan.rounds, self.plan.last]
        alive, count = self._entries, len(rounds)
        results = []
        for number in range(1, count):
            current = rounds[number - 1]
            entries = alive[: current.size]
            for entry in entries:
                entry.start(number, current.steps[entry.index])
            self._train(engine, entries, VALIDATION, [0], f"round {number} of {count}")
            results.append(self._result(entries, current))
            alive = ranked(self._entries)
            if not alive:
                raise self.failed[0].problem
            if self.replan is not None:
                rounds[number:] = self.replan(number, current, self._slowdown())
        finalists, seeds = alive[: rounds[-1].size], range(self.plan.seeds)
        for entry in finalists:
            entry.steps = rounds[-1].steps[entry.index]
            entry.rate = entry.rate or entry.candidate.rates[0]
        self._train(engine, finalists, VALIDATION, seeds, f"round {count} of {count}")
        finalists = [entry for entry in finalists if len(entry.trials) == self.plan.seeds]
        if not finalists:
            raise self.failed[0].problem
        validation = self._board(finalists, None, None)
        # The models are in the store by now; only their predictions on the test split are new.
        self._train(engine, finalists, self.plan.test, seeds, f"final {self.plan.test}")
        if any(len(entry.trials) < self.plan.seeds for entry in finalists):
            raise self.failed[-1].problem
        self._report("", "comparing")
        return RoundsOutcome(
            results, validation, self._board(finalists, self.baselines, validation.winner)
        )

    def _slowdown(self) -> float:
        """Return the seconds of the round's runs per planned second; 1 if no timings exist."""
        spent = planned = 0.0
        for entry in self._entries:
            for trial in entry.trials:
                timing = trial.evaluation.timing
                if timing.train_seconds is not None and timing.eval_seconds is not None:
                    spent += timing.train_seconds + timing.eval_seconds
                    planned += entry.steps * entry.candidate.pace + self.plan.beside
        return spent / planned if spent and planned else 1.0

    def _board(
        self, entries: Sequence[RaceEntry], baselines: Rivals | None, winner: str | None
    ) -> Leaderboard:
        finalists = []
        for entry in entries:
            trials = sorted(entry.trials, key=lambda trial: trial.evaluation.report.seed)
            finalists.append(
                Finalist(
                    entry.candidate.label,
                    entry.candidate.pace,
                    trials[0].rate,
                    [trial.evaluation for trial in trials],
                    [trial.skill for trial in trials],
                )
            )
        return leaderboard(finalists, baselines, self.plan.guesses, self._predictions, winner)

    def read(self, report: str) -> ReportPredictions:
        """Return the predictions of a report that are scored, given its REF."""
        return self._predictions(read(self.store.resolve(report, {REPORT})))

    def _predictions(self, evaluation: Evaluation) -> ReportPredictions:
        predictions = ReportPredictions.read(evaluation).of_target(self.config.target)
        return predictions if self.records is None else predictions.by_row()

    def _result(self, entries: Sequence[RaceEntry], current: Round) -> RoundResult:
        """Return the result of a round; each entry keeps its best rate."""
        best = {entry.candidate.label: entry.keep_best_rate() for entry in entries}
        scored = {label: trial for label, trial in best.items() if trial is not None}
        return RoundResult(
            seconds=current.seconds,
            steps={entry.candidate.label: entry.steps for entry in entries},
            tried={
                entry.candidate.label: {f"{trial.rate:g}": trial.skill for trial in entry.trials}
                for entry in entries
            },
            rates={label: trial.rate for label, trial in scored.items()},
            skills={entry.candidate.label: entry.skill for entry in entries},
            reports={label: trial.evaluation.ref for label, trial in scored.items()},
        )

    def _train(
        self,
        engine: Engine,
        entries: Sequence[RaceEntry],
        split: str,
        seeds: Sequence[int],
        title: str,
    ) -> None:
        """Train and evaluate each entry, at its own rate or at all of its rates, and store the
        outcome in ``trials`` and ``skill``.
        """
        for entry in self._entries:
            entry.state = "waiting" if entry in entries else "out"
            entry.trials = []
        runs = list(self._runs(entries, split, seeds))
        for run in runs:
            self._entries[run.index].pending += 1
        self._report("", title, 0, len(runs))
        done = 0

        def each(outcome: RunOutcome) -> None:
            nonlocal done
            done += 1
            line = self._record(outcome)
            self._report(f"{title}, {done}/{len(runs)}: {line}", title, done, len(runs))

        runner = Runner(
            root=self.store.root,
            parallel=self.parallel,
            progress=lambda state: None,
            failed=self.failed,
            each=each,
            engine=engine,
        )
        runner(runs)

    def _runs(
        self, entries: Sequence[RaceEntry], split: str, seeds: Sequence[int]
    ) -> Iterator[Run]:
        plan, device = self.plan, self.config.device
        rows = plan.rows[split != VALIDATION]
        for seed, entry in itertools.product(seeds, entries):
            candidate = entry.candidate
            data, steps = self.data[candidate.data], entry.steps
            budget: dict[str, Any] = {"steps": steps}
            if candidate.unit == "epochs":
                budget = {"epochs": steps, "patience": max(5, steps // 10)}
            ask = evaluating(str(data.path), split, rows, device)
            for rate in candidate.rates if entry.rate is None else [entry.rate]:
                more = budget | {"seed": seed, "learning_rate": rate}
                learn = training(
                    data, candidate.options, candidate.preset, candidate.batch, device, **more
                )
                point = {"candidate": candidate.label, "seed": str(seed)}
                point |= {"rate": f"{rate:g}"} if plan.tried > 1 else {}
                yield Run(index=entry.index, table="", point=point, train=learn, eval=ask)

    def _record(self, outcome: RunOutcome) -> str:
        """Keep the outcome of a run, and return a line about it."""
        run = outcome.run
        entry, rate = self._entries[run.index], run.train.learning_rate
        assert rate is not None  # _runs sets it
        entry.pending -= 1
        if outcome.report is None:
            line = str(outcome.problem)
        else:
            evaluation = read(self.store.resolve(str(outcome.report), {REPORT}))
            skill = score(self._predictions(evaluation), self.plan.guesses)
            entry.trials.append(_Trial(rate, skill, evaluation))
            if run.eval.split == VALIDATION:
                entry.skill = max(trial.skill for trial in entry.trials)
            seed = f"seed {run.point['seed']}, "
            at = f"lr {rate:g}, " if self.plan.tried > 1 else ""
            steps = f"{entry.steps:,} {entry.candidate.unit}"
            line = f"{run.eval.split} skill {skill:z.3f}, {seed}{at}{steps}"
        if not entry.pending:
            entry.state = "done" if entry.trials else "failed"
        return f"{entry.candidate.label}: {line}"

    def _report(self, line: str, doing: str, done: int = 0, total: int = 0) -> None:
        running = [entry for entry in self._entries if entry.pending][: self.parallel.jobs]
        standings = [
            CandidateState(
                entry.candidate.label,
                "running" if entry in running else entry.state,
                entry.steps,
                entry.skill,
                entry.candidate.unit,
            )
            for entry in self._entries
        ]
        self.progress(RaceProgress(line, doing, done, total, standings))
