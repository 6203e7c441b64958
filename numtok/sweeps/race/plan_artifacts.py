"""The artifacts of a race's plan: the plan itself, and the rounds as shortened during the race."""

import time
from dataclasses import dataclass
from typing import Any

import msgspec

from numtok.setting_words import command_line
from numtok.settings.race import Config
from numtok.store.artifact import Artifact
from numtok.store.store import Store
from numtok.sweeps.parallel import Parallelism
from numtok.sweeps.race.entrants import Encodings, Entered, predicted_rows
from numtok.sweeps.race.measuring import Measuring
from numtok.sweeps.race.plan import (
    LATER_ROUNDS,
    PLAN,
    RACE,
    LaterRounds,
    Plan,
    Progress,
    RaceProgress,
    RaceShape,
    Round,
    Time,
    shortened,
)
from numtok.sweeps.race.planning import plan_of, shape_of
from numtok.sweeps.race.skill import medians
from numtok.training.device import device_of

REVISION = 9


@dataclass(kw_only=True)
class PlanArtifacts:
    """Reads the plan of a race from the store, or makes it. The race began at ``started``."""

    config: Config
    entered: Entered
    data: Encodings
    store: Store
    parallel: Parallelism
    progress: Progress
    started: float

    def plan(self) -> Artifact:
        """Return the artifact with the plan. If it does not exist, the plan is made and stored.

        The parents of the artifact are the data of the first candidate for texts and the tables:
        all candidates have the same rows.
        """
        shape = shape_of(self.config, self.entered.is_table)
        settings: dict[str, Any] = {
            "stage": "race",
            "revision": REVISION,
            "seconds": self.config.seconds,
            "seeds": self.config.seeds,
            "rates": shape.rates,
            "preset": self.config.preset,
            "target": self.config.target,
            "test": self.entered.test,
            "device": "cuda" if self.parallel.gpu else device_of(self.config.device).type,
            "entries": [msgspec.to_builtins(entry) for entry in self.entered.entries],
        }
        parents = [artifact.as_parent() for artifact in self._first_data()]
        command = ["numtok", "race", *command_line(self.config)]
        with self.store.draft(RACE, self.entered.name, settings, parents, command) as draft:
            if isinstance(draft, Artifact):
                return draft
            plan = self._planned(shape)
            PLAN.write(draft.path, plan)
            return draft.publish({"candidates": len(plan.candidates)}, {})

    def _first_data(self) -> list[Artifact]:
        firsts = {entry.table: entry for entry in reversed(self.entered.entries)}
        return [self.data.of(entry) for entry in reversed(firsts.values())]

    def _planned(self, shape: RaceShape) -> Plan:
        """Measure the candidates, and return the plan."""
        assert self.parallel.threads is not None  # a race always sets them
        first = self.data.of(self.entered.entries[0])
        rows = predicted_rows(self.data, self.entered)
        with self.parallel.workers(self.store.spool) as engine:
            measured = Measuring(
                config=self.config,
                entered=self.entered,
                data=self.data,
                store=self.store,
                parallel=self.parallel,
                progress=self.progress,
                started=self.started,
                engine=engine,
                shape=shape,
            ).measure(rows[0])
        return plan_of(
            measured,
            shape,
            threads=self.parallel.threads,
            train_rows=self.entered.rows[0],
            test=self.entered.test,
            rows=rows,
            guesses=medians(first),
        )

    def later_rounds(
        self,
        number: int,
        before: Round,
        slowdown: float,
        *,
        plan: Plan,
        stored: Artifact,
        deadline: float,
    ) -> list[Round]:
        """Return the rounds that remain after the round ``number``, shortened if the machine is
        slower than planned.

        The rounds are stored as a child of the ``stored`` plan, so that a resumed race has the same
        rounds.

        before
            The round that just finished.
        slowdown
            Seconds that its runs took per planned second.
        deadline
            End of the race on the clock of ``time.monotonic``.
        """
        settings = {"stage": "race-rounds", "revision": REVISION, "round": number}
        name = f"{stored.name}-round-{number + 1}"
        command = ["numtok", "race", *command_line(self.config)]
        with self.store.draft(RACE, name, settings, [stored.as_parent()], command) as draft:
            if isinstance(draft, Artifact):
                return LATER_ROUNDS.read(draft.path).rounds
            planned = [*plan.rounds, plan.last][number:]
            left = max(1.0, deadline - time.monotonic())
            paces = [candidate.pace * slowdown for candidate in plan.candidates]
            available = Time(left, plan.beside * slowdown, self.parallel.jobs)
            rounds = shortened(available, planned, before, paces, plan.seeds)
            LATER_ROUNDS.write(draft.path, LaterRounds(slowdown=slowdown, rounds=rounds))
            draft.publish({"rounds": len(rounds)}, {})
        if rounds != planned:
            line = f"runs took {slowdown:.1f} times as long as planned; shortening later rounds"
            self.progress(RaceProgress(line, "planning the later rounds"))
        return rounds
