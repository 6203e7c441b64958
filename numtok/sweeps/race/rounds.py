"""The rounds of a race: all that are left train for the same time, and the best go on."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import msgspec

from numtok.evaluation.report_files import Evaluation, ReportPredictions, read
from numtok.evaluation.rivals import rivals
from numtok.reports import REPORT
from numtok.settings import eval
from numtok.settings.race import Config
from numtok.stages.train import VALIDATION
from numtok.store.artifact import Artifact
from numtok.store.store import Store
from numtok.sweeps.race.leaderboard import Finalist, Leaderboard, leaderboard
from numtok.sweeps.race.plan import Plan, Round
from numtok.sweeps.race.planning import training
from numtok.sweeps.race.progress import CandidateState, Progress, RaceProgress
from numtok.sweeps.race.skill import score
from numtok.sweeps.runs import Failed, Run, Runner, RunOutcome
from numtok.sweeps.side import Side


class RoundResult(msgspec.Struct, frozen=True):
    """A round on the validation split: by label the steps of each, its skill over the median of
    its slot, None where it failed, and the REFs of the reports."""

    seconds: float
    steps: dict[str, int]
    skills: dict[str, float | None]
    reports: dict[str, str]


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
        self._steps: dict[int, int] = {}
        self._states = {place: "waiting" for place in range(len(self.plan.candidates))}
        self._evaluations: dict[int, list[Evaluation]] = {}
        self._left: list[int] = []

    def run(self) -> tuple[list[RoundResult], Leaderboard]:
        """All rounds."""
        alive = list(range(len(self.plan.candidates)))
        rounds = []
        for number, one in enumerate(self.plan.rounds, 1):
            title = f"round {number} of {len(self.plan.rounds) + 1}"
            self._train(alive[: one.size], one, VALIDATION, self.plan.rows[0], [0], title)
            rounds.append(self._result(alive, one))
            alive = self._ranked(alive)
        title = f"last round, on {self.plan.test}"
        finalists, seeds = alive[: self.plan.last.size], range(self.plan.seeds)
        self._train(finalists, self.plan.last, self.plan.test, self.plan.rows[1], seeds, title)
        return rounds, self._board(finalists)

    def _ranked(self, alive: Sequence[int]) -> list[int]:
        """Those with a figure, the best first, of equals the first; the error of the first where
        all have failed."""
        skills = {place: self._skills.get(place) for place in alive}
        ranked = [place for place in alive if skills[place] is not None]
        if not ranked:
            raise self.failed[0].problem
        return sorted(ranked, key=lambda place: -(skills[place] or 0.0))

    def _result(self, alive: Sequence[int], one: Round) -> RoundResult:
        labels = {place: self.plan.candidates[place].label for place in alive[: one.size]}
        return RoundResult(
            one.seconds,
            {label: one.steps[place] for place, label in labels.items()},
            {label: self._skills.get(place) for place, label in labels.items()},
            {
                label: each.ref
                for place, label in labels.items()
                for each in self._evaluations[place]
            },
        )

    def _train(
        self,
        places: Sequence[int],
        one: Round,
        split: str,
        rows: int | None,
        seeds: Sequence[int],
        title: str,
    ) -> None:
        """Train and evaluate; what came of it is in ``_evaluations`` and ``_skills``."""
        self._states |= {place: "waiting" if place in places else "out" for place in self._states}
        self._steps |= {place: one.steps[place] for place in places}
        self._evaluations = {place: [] for place in places}
        self._left = [place for _ in seeds for place in places]
        for place in places if split == VALIDATION else ():
            self._skills[place] = None
        runs = list(self._runs(places, one, split, rows, seeds))
        self._tell("", title, 0, len(runs))
        done = 0

        def each(outcome: RunOutcome) -> None:
            nonlocal done
            done += 1
            told = self._took(outcome, split)
            self._tell(f"{title}, {done}/{len(runs)}: {told}", title, done, len(runs))

        Runner(self.store.root, self.side, lambda told: None, self.failed, each=each)(runs)

    def _runs(
        self,
        places: Sequence[int],
        one: Round,
        split: str,
        rows: int | None,
        seeds: Sequence[int],
    ) -> Iterator[Run]:
        plan, device = self.plan, self.config.device
        for seed in seeds:
            for place in places:
                candidate = plan.candidates[place]
                data, steps = self.data[candidate.data], one.steps[place]
                budget = {"steps": steps}
                if plan.unit == "epochs":
                    budget = {"epochs": steps, "patience": max(5, steps // 10)}
                learn = training(
                    data, candidate.options, plan.preset, plan.batch, device, seed=seed, **budget
                )
                ask = eval.Config(
                    model="", data=str(data.path), split=split, rows=rows, device=device
                )
                point = {"candidate": candidate.label, "seed": str(seed)}
                yield Run(place, "", point, learn, ask)

    def _took(self, outcome: RunOutcome, split: str) -> str:
        """Keep what came of a run, and say it."""
        place = outcome.run.index
        self._left.remove(place)
        label = self.plan.candidates[place].label
        if outcome.report is None:
            self._states[place] = "failed"
            return f"{label}: {outcome.problem}"
        evaluation = read(self.store.resolve(str(outcome.report), {REPORT}))
        self._evaluations[place].append(evaluation)
        found = ReportPredictions.read(evaluation).of_target(self.config.target)
        skill = score(found, self.plan.guesses)
        if split == VALIDATION:
            self._skills[place] = skill
        if place not in self._left and self._states[place] != "failed":
            self._states[place] = "done"
        seed = f", seed {outcome.run.point['seed']}" if split != VALIDATION else ""
        return f"{label}{seed}, {self._steps[place]:,} {self.plan.unit}, skill {skill:.3f}"

    def _board(self, finalists: Sequence[int]) -> Leaderboard:
        self._tell("", "comparing")
        entered = []
        for place in finalists:
            one, evaluations = self.plan.candidates[place], self._evaluations[place]
            if len(evaluations) == self.plan.seeds:
                evaluations = sorted(evaluations, key=lambda each: each.report.seed)
                entered.append(Finalist(one.label, one.pace, evaluations))
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
        self.progress(RaceProgress(line, doing, done, total, standings))
