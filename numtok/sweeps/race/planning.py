"""How the plan of a race is made: seconds a step are measured, and rounds are made of the time."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import msgspec

from numtok.config import threads
from numtok.declaration import command_line
from numtok.errors import NumtokError, UsageError
from numtok.settings import train as train_settings
from numtok.settings.race import Config
from numtok.stages import train
from numtok.store.artifact import Artifact
from numtok.store.store import Store
from numtok.sweeps.race.candidates import Entry
from numtok.sweeps.race.entrants import Entered, predicted_rows
from numtok.sweeps.race.plan import LEAST, PLAN, RACE, TRAINING, Candidate, Plan, entered, rounds_of
from numtok.sweeps.race.progress import Progress, RaceProgress
from numtok.sweeps.race.skill import medians
from numtok.sweeps.runs import with_threads
from numtok.training.trainer import device_count, device_of

REVISION = 1
_LONG = 1200.0  # seconds from which three are in the last round, and not two
_MEASURING = 0.1  # of the time, for all paces together
_LONGEST_LOOK, _SHORTEST_LOOK = 2.0, 0.05  # seconds a pace is measured for
#: Of texts, from the smallest: the largest with enough steps in the last round is taken.
_SIZES = ("nano,layers=2,width=64", "nano", "micro")
_ENOUGH_STEPS, _ENOUGH_ROWS = 2_000, (0, 5_000, 100_000)
_TABLE_PRESET = "mlp"
_BATCHES = range(4, 8)  # powers of two: 16 to 128 rows
_STEPS_A_PASS = 40  # through the train split, at least, where a batch may be so small
_PASSES, _EPOCHS = 300, 1_000  # through the train split, at most: of texts, of a table
_LEAST_CAP = 500  # steps that are always allowed


def planned(
    config: Config,
    there: Entered,
    data: Mapping[Entry, Artifact],
    store: Store,
    progress: Progress,
) -> Artifact:
    """The plan, which is made where it is not there."""
    settings: dict[str, Any] = {
        "stage": "race",
        "revision": REVISION,
        "seconds": config.seconds,
        "seeds": config.seeds,
        "preset": config.preset,
        "target": config.target,
        "test": there.test,
        "device": device_of(config.device).type,
        "entries": [msgspec.to_builtins(one) for one in there.entries],
    }
    parents = [one.as_parent() for one in dict.fromkeys(data.values())]
    command = ["numtok", "race", *command_line(config)]
    with store.draft(RACE, there.name, settings, parents, command) as draft:
        if isinstance(draft, Artifact):
            return draft
        plan = _Planning(config, there, data, store, progress).plan()
        PLAN.write(draft.path, plan)
        return draft.publish({"candidates": len(plan.candidates)}, {})


@dataclass(frozen=True)
class _Planning:
    """Measures what a step takes, and makes a plan of it."""

    config: Config
    there: Entered
    data: Mapping[Entry, Artifact]
    store: Store
    progress: Progress

    def plan(self) -> Plan:
        """Raises what stopped the first candidate where none can be trained."""
        jobs = jobs_of(self.config)
        each = None if jobs == 1 else max(1, (threads() or os.cpu_count() or 1) // jobs)
        total, finalists = time_of(self.config), finalists_of(self.config)
        with with_threads(each):
            size, paces = self._paced(total, finalists)
        unit: Literal["steps", "epochs"] = "epochs" if self.there.of_table else "steps"
        measured = list(paces.items())
        if self.there.of_table:  # none is more usual than others
            measured.sort(key=lambda one: one[1])
        paced = [pace for _, pace in measured]
        count = entered(total, paced, finalists, self.config.seeds, LEAST[unit])
        taking_part = measured[:count]
        *rounds, last = rounds_of(total, paced[:count], finalists, self.config.seeds, self._most)
        first = self.data[measured[0][0]]
        return Plan(
            unit=unit,
            preset=size,
            batch=self._batch,
            learning_rate=None,
            candidates=[
                Candidate(
                    entry.label, self.data[entry].ref, entry.scheme, self._options(entry), pace
                )
                for entry, pace in taking_part
            ],
            rounds=rounds,
            last=last,
            seeds=self.config.seeds,
            threads=each,
            test=self.there.test,
            rows=predicted_rows(first, self.there),
            guesses=medians(first),
            left_out=len(self.data) - count,
        )

    def _paced(self, total: float, finalists: int) -> tuple[str, dict[Entry, float]]:
        """The size of the models, and seconds a step of each candidate that can be trained."""
        usual = self._size(total, finalists)
        paces: dict[Entry, float] = {}
        problem: NumtokError | None = None
        for done, entry in enumerate(self.data):
            self.progress(RaceProgress("", f"measuring {entry.label}", done, len(self.data)))
            try:
                paces[entry] = self._pace(entry, usual)
            except UsageError as error:  # what does not go together
                problem = problem or error
                self.progress(RaceProgress(f"{entry.label}: {error}", "measuring"))
        if not paces:
            assert problem is not None
            raise problem
        return usual, paces

    def _size(self, total: float, finalists: int) -> str:
        """As asked for; else the largest one for which there are rows, and steps."""
        if self.config.preset is not None:
            return self.config.preset
        if self.there.of_table:
            return _TABLE_PRESET
        found = _SIZES[0]
        first = next(iter(self.data))
        for size, least in zip(_SIZES[1:], _ENOUGH_ROWS[1:], strict=True):
            if self.there.rows[0] < least:
                break
            [*_, last] = rounds_of(
                total,
                [self._pace(first, size)] * len(self.data),
                finalists,
                self.config.seeds,
                _ENOUGH_STEPS,
            )
            if last.steps[0] < _ENOUGH_STEPS:
                break
            found = size
        return found

    def _pace(self, entry: Entry, size: str) -> float:
        share = _MEASURING * self.config.seconds / len(self.data)
        settings = training(
            self.data[entry], self._options(entry), size, self._batch, self.config.device
        )
        limit = min(_LONGEST_LOOK, max(_SHORTEST_LOOK, share))
        return train.pace(settings, self.store, limit)

    def _options(self, entry: Entry) -> dict[str, str]:
        """Those of ``numtok train`` that set a candidate apart."""
        found = {"head": entry.head, "objective": entry.objective}
        if self.there.of_table:
            found = {"head": entry.scheme, "normalize": entry.normalize}
        return {name: value for name, value in found.items() if value is not None}

    @property
    def _batch(self) -> int:
        """Rows a step: fewer where the train split would be gone through in a few."""
        fits = [1 << k for k in _BATCHES if (1 << k) * _STEPS_A_PASS <= self.there.rows[0]]
        return max(fits, default=1 << _BATCHES[0])

    @property
    def _most(self) -> int:
        """Steps, or epochs, at most: beyond them rows are learnt by heart."""
        if self.there.of_table:
            return _EPOCHS
        return max(_LEAST_CAP, _PASSES * -(-self.there.rows[0] // self._batch))


def training(
    data: Artifact, options: Mapping[str, str], size: str, batch: int, device: str, **more: Any
) -> train_settings.Config:
    """The settings of a training: a candidate's ``options``, what all share, and ``more``."""
    settings = more | options
    return train_settings.Config(
        data=str(data.path), preset=size, batch=batch, device=device, **settings
    )


def time_of(config: Config) -> float:
    """Seconds of training, of all runs together."""
    return TRAINING * config.seconds * jobs_of(config)


def finalists_of(config: Config) -> int:
    """How many are in the last round."""
    return 3 if config.seconds >= _LONG else 2


def jobs_of(config: Config) -> int:
    """Runs side by side: as asked, or one a device."""
    return config.jobs or device_count(config.devices, device_of(config.device))
