"""A complete race, from data to a winner: profile, list candidates, measure, plan, run rounds,
decide.

All results are artifacts: encoded data, the plan, models and reports. Running the same command
again reuses them, so an interrupted race can be resumed.
"""

import shlex
import time
from collections.abc import Callable
from functools import partial

import msgspec

from numtok.data.reading.sources import CSV
from numtok.data.records.reader import FORMATS
from numtok.errors import UsageError
from numtok.reports import INTERVAL_LEVEL
from numtok.setting_words import command_line
from numtok.settings.race import Config as Config
from numtok.store.engines.engine import connected
from numtok.store.store import Store
from numtok.sweeps.baseline_rows import command_for
from numtok.sweeps.parallel import Parallelism, race_parallelism
from numtok.sweeps.race.candidates import COLUMNS, Verdict
from numtok.sweeps.race.entrants import Encodings, Entered, race_baselines
from numtok.sweeps.race.from_records import enter_records, is_records
from numtok.sweeps.race.from_table import enter_table, is_stored_table
from numtok.sweeps.race.from_texts import enter_texts
from numtok.sweeps.race.leaderboard import AccuracyRow, Leaderboard, accuracies
from numtok.sweeps.race.plan import PLAN, Expected, Plan, Progress, RaceProgress, expected
from numtok.sweeps.race.plan_artifacts import PlanArtifacts
from numtok.sweeps.race.planning import shape_of, time_of
from numtok.sweeps.race.reasons import close_calls, notes_on_fields, reasons_of
from numtok.sweeps.race.rounds import RoundResult, Rounds
from numtok.sweeps.race.words import FieldSummary
from numtok.sweeps.runs import quiet_store


class RaceResult(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a race. A dry run sets only the fields that are known before training.

    target
        The value of ``--target``: the scored target of texts, or the target column of a table file.
    of_table
        True if all candidates read the columns of a table.
    kind, columns
        Kind of the rows, and lines that describe the columns of records.
    plan
        REF of the plan.
    records
        REF of the rendered rows; None unless the rows are records.
    fields
        Descriptions of the numbers in each field.
    verdicts
        Decision on each scheme (for tables, each head): whether it takes part, and why.
    entered
        Labels of the candidates, including candidates left out for lack of time.
    expected
        The rounds to expect if there is time for all candidates.
    rows
        Numbers of rows in the train, validation and test splits.
    validation, leaderboard
        Leaderboards of the last round: on the validation split, which decides the winner, and on
        the test split.
    winner, model
        Label of the winner, and the REF of its model with the seed that has the highest skill on
        the validation split.
    accuracy
        R2, error and intervals of the returned model and of the best baselines on the test split,
        if there is one field.
    reasons
        Sentences about the winner: what it achieves, why it was chosen, which others raced, which
        fields it reads, and whether a field may contain the target.
    close_calls
        A sentence for each round that eliminated a candidate by a difference within noise.
    commands
        Commands that repeat the race, that predict with the model and, unless the model is clearly
        better, that predict with the best baseline. If the baseline has less error, its command
        comes before the model's.
    failed
        Reasons why a candidate, or one of its seeds, has no results, keyed by label.
    """

    data: list[str]
    of_table: bool
    kind: str
    columns: list[str]
    target: str | None
    minutes: float
    rows: tuple[int, int, int]
    fields: list[FieldSummary]
    verdicts: list[Verdict]
    entered: list[str]
    expected: list[Expected]
    notes: list[str]
    plan: str | None = None
    records: str | None = None
    planned: Plan | None = None
    rounds: list[RoundResult] = []
    validation: Leaderboard | None = None
    leaderboard: Leaderboard | None = None
    winner: str | None = None
    model: str | None = None
    accuracy: list[AccuracyRow] = []
    reasons: list[str] = []
    close_calls: list[str] = []
    commands: list[str] = []
    failed: dict[str, str] = {}


def run(
    config: Config, store: Store, progress: Progress, introduce: Callable[[RaceResult], None]
) -> RaceResult:
    """Run a race, or resume one. ``introduce`` is called before training with a result in which
    only the fields known at that point are set.

    Raises UsageError if a setting is invalid, DataError if the data has no numbers or too few rows,
    and StoreError if the store cannot be read or written. If no candidate can be trained, the error
    of the first one is raised.
    """
    started = time.monotonic()
    with connected(config.engine) as nodes:
        parallel = race_parallelism(config, nodes)
        entered = _entrance(config, store)(config, store, progress)
        known = _introduced(config, parallel, entered)
        introduce(known)
        if config.dry_run:
            return known
        return _raced(
            known,
            config,
            parallel,
            quiet_store(store.root),
            entered=entered,
            progress=progress,
            began=started,
        )


def _raced(
    known: RaceResult,
    config: Config,
    parallel: Parallelism,
    store: Store,
    *,
    entered: Entered,
    progress: Progress,
    began: float,
) -> RaceResult:
    """Train the candidates, and add the outcome to what is ``known`` about the race, which began at
    the time ``began``."""
    data = Encodings(entered, store, progress)
    baselines = race_baselines(entered, data, progress)
    plans = PlanArtifacts(
        config=config,
        entered=entered,
        data=data,
        store=store,
        parallel=parallel,
        progress=progress,
        started=began,
    )
    stored = plans.plan()
    plan = stored.read(PLAN)
    if plan.left_out:
        progress(RaceProgress(_left_out(plan, config), "planning"))
    entries = {entry.label: entry for entry in entered.entries}
    artifacts = {candidate.data: data.of(entries[candidate.label]) for candidate in plan.candidates}
    deadline = max(began + config.seconds, time.monotonic() + config.seconds / 2)
    race = Rounds(
        config=config,
        plan=plan,
        data=artifacts,
        baselines=baselines,
        store=store,
        parallel=parallel._replace(
            threads=plan.threads
        ),  # the last digits of results depend on them
        progress=progress,
        records=entered.records,
        replan=partial(plans.later_rounds, plan=plan, stored=stored, deadline=deadline),
    )
    rounds, validation, board = race.run()
    seed, winner = validation.place(board.winner).best_seed, board.place(board.winner)
    model = winner.models[seed]
    return msgspec.structs.replace(
        known,
        plan=stored.ref,
        records=None if entered.records is None else entered.records.ref,
        planned=plan,
        rounds=rounds,
        validation=validation,
        leaderboard=board,
        winner=board.winner,
        model=model,
        accuracy=list(accuracies(board, race.read(winner.reports[seed]).answers, seed)),
        reasons=[
            *reasons_of(validation, board, plan, entered.verdicts),
            *notes_on_fields(entered, board),
        ],
        close_calls=list(close_calls(rounds, plan, race.read)),
        commands=_commands(config, entered, model, board),
        failed={label: str(problem) for label, problem in race.failed},
    )


def _entrance(config: Config, store: Store) -> Callable[[Config, Store, Progress], Entered]:
    """Return the function that prepares the data of a race. Raises UsageError if a table is one of
    several inputs."""
    if is_records(config):
        return enter_records
    for name in config.inputs:
        if name.endswith(CSV):
            raise UsageError(f"{name} is a table and cannot be combined with other inputs")
    of_table = len(config.inputs) == 1 and is_stored_table(config.inputs[0], store)
    return enter_table if of_table else enter_texts


def _left_out(plan: Plan, config: Config) -> str:
    total = len(plan.candidates) + plan.left_out
    rounds = len(plan.rounds) + 1
    return (
        f"{len(plan.candidates)} of {total} candidates fit in {config.seconds / 60:g} min, in "
        f"{rounds} rounds; the others will not be started. To include them, increase --minutes"
    )


def _introduced(config: Config, parallel: Parallelism, entered: Entered) -> RaceResult:
    """Describe the race before anything is trained. Raises UsageError if no scheme takes part."""
    if not entered.entries:
        raise UsageError(
            "no scheme can take part: "
            + "; ".join(f"{verdict.scheme} {verdict.reason}" for verdict in entered.verdicts)
        )
    shape = shape_of(config, entered.is_table)
    return RaceResult(
        data=list(config.inputs),
        of_table=entered.is_table,
        kind=entered.kind,
        columns=list(entered.columns),
        target=config.target,
        minutes=config.seconds / 60,
        rows=entered.rows,
        fields=entered.fields,
        verdicts=entered.verdicts,
        entered=[entry.label for entry in entered.entries],
        expected=expected(time_of(config, parallel), len(entered.entries), shape),
        notes=entered.notes,
    )


def _commands(config: Config, entered: Entered, model: str, board: Leaderboard) -> list[str]:
    """Return the commands of the result; that of the baseline only if no model is clearly better,
    and before that of the model if the baseline has less error."""
    again = ["numtok", "race", *command_line(config, changed=True)]
    query = ["--text", "... [?] ..."]
    if entered.kind != "rows of text":  # each row has one target
        query = [f"NEW{_ending(config)}", "--interval", str(INTERVAL_LEVEL)]
    predicts = [shlex.join(["numtok", "predict", model, *query])]
    skill = board.place(board.winner).over_baseline
    if skill.low is None or skill.low <= 0:
        tables = [entered.tables[name] for name in ("", COLUMNS) if name in entered.tables]
        rows = [] if entered.records is None else [entered.records]
        baseline = command_for(board.baseline, [*tables, *rows], *query)
        is_better = skill.value is None or skill.value < 0
        predicts = [*baseline, *predicts] if is_better else [*predicts, *baseline]
    return [shlex.join(again), *predicts]


def _ending(config: Config) -> str:
    """Return the ending of the race's file, or .csv for an artifact."""
    return next(filter(config.inputs[0].endswith, FORMATS), ".csv")
