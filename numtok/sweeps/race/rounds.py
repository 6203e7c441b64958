"""The rounds of a race: all that are left train for the same time, and the best go on."""

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import msgspec

from numtok.evaluation.report_files import Evaluation, ReportPredictions, read
from numtok.evaluation.rivals import rivals
from numtok.reports import REPORT
from numtok.settings import eval
from numtok.settings.race import Config
from numtok.stages.train import VALIDATION
from numtok.store.artifact import Artifact
from numtok.store.engines.engine import Engine
from numtok.store.store import Store
from numtok.sweeps.race.leaderboard import Finalist, Leaderboard, leaderboard
from numtok.sweeps.race.plan import Plan, Round
from numtok.sweeps.race.planning import training
from numtok.sweeps.race.progress import CandidateState, Progress, RaceProgress
from numtok.sweeps.race.skill import score
from numtok.sweeps.runs import Failed, Run, Runner, RunOutcome
from numtok.sweeps.side import Side


class RoundResult(msgspec.Struct, frozen=True):
    """A round on the validation split, by label.

    steps
        Of each, at each of its rates.
    tried
        By learning rate, as it is written, the skill over the median of the slot; without those
        that failed.
    rates, skills, reports
        The best rate, its skill, None where all failed, and the REF of its report.
    """

    seconds: float
    steps: dict[str, int]
    tried: dict[str, dict[str, float]]
    rates: dict[str, float]
    skills: dict[str, float | None]
    reports: dict[str, str]


class _Trial(NamedTuple):
    """A training that went well, and what it is worth."""

    rate: float
    skill: float
    evaluation: Evaluation


@dataclass
class Rounds:
    """A race under way."""

    config: Config
    plan: Plan
    data: Mapping[str, Artifact]
    store: Store
    side: Side
    progress: Progress
    failed: list[Failed] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._skills: dict[int, float | None] = {}
        self._rates: dict[int, float] = {}  # that each goes on with
        self._steps: dict[int, int] = {}
        self._states = {place: "waiting" for place in range(len(self.plan.candidates))}
        self._trials: dict[int, list[_Trial]] = {}
        self._left: list[int] = []

    def run(self) -> tuple[list[RoundResult], Leaderboard]:
        """All rounds, by processes that are started once."""
        with self.side.workers(self.store.spool) as engine:
            return self._run(engine)

    def _run(self, engine: Engine) -> tuple[list[RoundResult], Leaderboard]:
        alive = list(range(len(self.plan.candidates)))
        rounds = []
        for number, one in enumerate(self.plan.rounds, 1):
            title = f"round {number} of {len(self.plan.rounds) + 1}"
            places = alive[: one.size]
            rates = {place: [self._rates[place]] for place in places if place in self._rates}
            self._train(engine, places, one, VALIDATION, rates, [0], title)
            rounds.append(self._result(places, one))
            alive = self._ranked(alive)
        title = f"last round, on {self.plan.test}"
        finalists, seeds = alive[: self.plan.last.size], range(self.plan.seeds)
        usual = {place: self.plan.candidates[place].rates[0] for place in finalists}
        rates = {place: [self._rates.get(place, usual[place])] for place in finalists}
        self._train(engine, finalists, self.plan.last, self.plan.test, rates, seeds, title)
        return rounds, self._board(finalists)

    def _ranked(self, alive: Sequence[int]) -> list[int]:
        """Those with a figure, the best first, of equals the first; the error of the first where
        all have failed."""
        skills = {place: self._skills.get(place) for place in alive}
        ranked = [place for place in alive if skills[place] is not None]
        if not ranked:
            raise self.failed[0].problem
        return sorted(ranked, key=lambda place: -(skills[place] or 0.0))

    def _result(self, places: Sequence[int], one: Round) -> RoundResult:
        """What came of a round; each goes on with the rate that was best for it, of equals the
        first of the plan."""
        labels = {place: self.plan.candidates[place].label for place in places}
        best: dict[int, _Trial] = {}
        for place in places:
            trials = self._trials[place]
            trials.sort(key=lambda trial: self.plan.candidates[place].rates.index(trial.rate))
            if trials:
                best[place] = max(trials, key=lambda trial: trial.skill)
                self._rates[place] = best[place].rate
        return RoundResult(
            one.seconds,
            {label: one.steps[place] for place, label in labels.items()},
            {
                label: {f"{trial.rate:g}": trial.skill for trial in self._trials[place]}
                for place, label in labels.items()
            },
            {labels[place]: trial.rate for place, trial in best.items()},
            {label: self._skills[place] for place, label in labels.items()},
            {labels[place]: trial.evaluation.ref for place, trial in best.items()},
        )

    def _train(
        self,
        engine: Engine,
        places: Sequence[int],
        one: Round,
        split: str,
        rates: Mapping[int, Sequence[float]],
        seeds: Sequence[int],
        title: str,
    ) -> None:
        """Train and evaluate, at the rates of each, of the others at all; what came of it is in
        ``_trials`` and ``_skills``."""
        self._states |= {place: "waiting" if place in places else "out" for place in self._states}
        self._steps |= {place: one.steps[place] for place in places}
        self._trials = {place: [] for place in places}
        for place in places if split == VALIDATION else ():
            self._skills[place] = None
        runs = list(self._runs(places, one, split, rates, seeds))
        self._left = [run.index for run in runs]
        self._tell("", title, 0, len(runs))
        done = 0

        def each(outcome: RunOutcome) -> None:
            nonlocal done
            done += 1
            told = self._took(outcome, split)
            self._tell(f"{title}, {done}/{len(runs)}: {told}", title, done, len(runs))

        runner = Runner(
            self.store.root, self.side, lambda told: None, self.failed, each=each, engine=engine
        )
        runner(runs)

    def _runs(
        self,
        places: Sequence[int],
        one: Round,
        split: str,
        rates: Mapping[int, Sequence[float]],
        seeds: Sequence[int],
    ) -> Iterator[Run]:
        plan, device = self.plan, self.config.device
        rows = plan.rows[split != VALIDATION]
        for seed, place in itertools.product(seeds, places):
            candidate = plan.candidates[place]
            data, steps = self.data[candidate.data], one.steps[place]
            budget: dict[str, Any] = {"steps": steps}
            if plan.unit == "epochs":
                budget = {"epochs": steps, "patience": max(5, steps // 10)}
            ask = eval.Config(model="", data=str(data.path), split=split, rows=rows, device=device)
            for rate in rates.get(place, candidate.rates):
                more = budget | {"seed": seed, "learning_rate": rate}
                learn = training(data, candidate.options, plan.preset, plan.batch, device, **more)
                point = {"candidate": candidate.label, "seed": str(seed)}
                point |= {"rate": f"{rate:g}"} if plan.tried > 1 else {}
                yield Run(place, "", point, learn, ask)

    def _took(self, outcome: RunOutcome, split: str) -> str:
        """Keep what came of a run, and say it."""
        place, rate = outcome.run.index, outcome.run.train.learning_rate
        assert rate is not None  # each run is told its rate
        self._left.remove(place)
        label = self.plan.candidates[place].label
        if outcome.report is None:
            self._settle(place)
            return f"{label}: {outcome.problem}"
        evaluation = read(self.store.resolve(str(outcome.report), {REPORT}))
        found = ReportPredictions.read(evaluation).of_target(self.config.target)
        skill = score(found, self.plan.guesses)
        self._trials[place].append(_Trial(rate, skill, evaluation))
        if split == VALIDATION:
            self._skills[place] = max(one.skill for one in self._trials[place])
        self._settle(place)
        seed = f", seed {outcome.run.point['seed']}" if split != VALIDATION else ""
        at = f", rate {rate:g}" if self.plan.tried > 1 else ""
        return f"{label}{seed}{at}, {self._steps[place]:,} {self.plan.unit}, skill {skill:.3f}"

    def _settle(self, place: int) -> None:
        """Say what became of a candidate, once nothing of it is left to do."""
        if place not in self._left:
            self._states[place] = "done" if self._trials[place] else "failed"

    def _board(self, finalists: Sequence[int]) -> Leaderboard:
        self._tell("", "comparing")
        entered = []
        for place in finalists:
            one, trials = self.plan.candidates[place], self._trials[place]
            if len(trials) == self.plan.seeds:
                evaluations = [trial.evaluation for trial in trials]
                evaluations.sort(key=lambda each: each.report.seed)
                entered.append(Finalist(one.label, one.pace, trials[0].rate, evaluations))
        if not entered:
            raise self.failed[0].problem
        first = self.data[self.plan.candidates[finalists[0]].data]
        beside = rivals(first, self.plan.test, self.plan.rows[1])
        return leaderboard(entered, beside, self.plan.guesses, self.config.target)

    def _tell(self, line: str, doing: str, done: int = 0, total: int = 0) -> None:
        running = dict.fromkeys(self._left[: self.side.jobs])
        standings = [
            CandidateState(
                one.label,
                "running" if place in running else self._states[place],
                self._steps.get(place, 0),
                self._skills.get(place),
            )
            for place, one in enumerate(self.plan.candidates)
        ]
        self.progress(RaceProgress(line, doing, done, total, standings, self.plan.unit))
