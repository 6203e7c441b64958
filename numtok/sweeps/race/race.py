"""A complete race, from data to a winner: profile, list candidates, measure, plan, run rounds,
decide.

All results are artifacts: encoded data, the plan, models and reports. Running the same command
again reuses them, so an interrupted race can be resumed.
"""

import shlex
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial

import msgspec

from numtok.data.records.reader import FORMATS
from numtok.data.tables.table import read_table_of
from numtok.declaration import command_line
from numtok.errors import UsageError
from numtok.evaluation.report_files import ReportPredictions
from numtok.reports import INTERVAL_LEVEL, Figure
from numtok.settings.race import Config as Config
from numtok.store.engines.engine import connected
from numtok.store.store import Store
from numtok.sweeps.baseline_rows import command_for
from numtok.sweeps.race.candidates import COLUMNS, Verdict
from numtok.sweeps.race.entrants import Encodings, Entered, race_baselines
from numtok.sweeps.race.from_records import enter_records, is_records
from numtok.sweeps.race.from_table import enter_table, is_stored_table
from numtok.sweeps.race.from_texts import enter_texts
from numtok.sweeps.race.leaderboard import (
    CHEAPER,
    AccuracyRow,
    Contestant,
    Leaderboard,
    accuracies,
)
from numtok.sweeps.race.leaks import leak_notes
from numtok.sweeps.race.plan import PLAN, Expected, Plan, Progress, RaceProgress, expected
from numtok.sweeps.race.planning import Planning, shape_of, time_of
from numtok.sweeps.race.rounds import RoundResult, Rounds
from numtok.sweeps.race.skill import in_fields, skill_apart
from numtok.sweeps.race.words import FieldSummary
from numtok.sweeps.runs import Side, race_side

_MOST_NAMES = 8  # fields that a sentence lists


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
        Commands that repeat the race, that predict with the model and, unless the model is better,
        that predict with the best baseline.
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
        return _raced(
            config,
            race_side(config, nodes),
            store,
            progress=progress,
            introduce=introduce,
            started=started,
        )


def _raced(
    config: Config,
    side: Side,
    store: Store,
    *,
    progress: Progress,
    introduce: Callable[[RaceResult], None],
    started: float,
) -> RaceResult:
    entered = _entrance(config, store)(config, store, progress)
    result = _introduced(config, side, entered)
    introduce(result)
    if config.dry_run:
        return result
    quiet = Store(store.root, lambda note: None, any_name=True)
    data = Encodings(entered, quiet, progress)
    baselines = race_baselines(entered, data, progress)
    planning = Planning(
        config=config,
        entered=entered,
        data=data,
        store=quiet,
        side=side,
        progress=progress,
        started=started,
    )
    stored = planning.stored()
    plan = stored.read(PLAN)
    if plan.left_out:
        progress(RaceProgress(_left_out(plan, config), "planning"))
    entries = {entry.label: entry for entry in entered.entries}
    artifacts = {candidate.data: data.of(entries[candidate.label]) for candidate in plan.candidates}
    deadline = max(started + config.seconds, time.monotonic() + config.seconds / 2)
    race = Rounds(
        config=config,
        plan=plan,
        data=artifacts,
        baselines=baselines,
        store=quiet,
        side=side._replace(threads=plan.threads),  # the last digits of results depend on them
        progress=progress,
        records=entered.records,
        replan=partial(planning.replanned, plan=plan, stored=stored, deadline=deadline),
    )
    rounds, validation, board = race.run()
    seed, winner = validation.place(board.winner).best_seed, board.place(board.winner)
    model = winner.models[seed]
    return msgspec.structs.replace(
        result,
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
            *_fields_read(entered, board.winner),
            *_leaks(entered, board),
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
        if name.endswith(".csv"):
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


def _introduced(config: Config, side: Side, entered: Entered) -> RaceResult:
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
        expected=expected(time_of(config, side), len(entered.entries), shape),
        notes=entered.notes,
    )


def _commands(config: Config, entered: Entered, model: str, board: Leaderboard) -> list[str]:
    """Return the commands of the result; that of the baseline only if no model is better."""
    again = ["numtok", "race", *command_line(config, changed=True)]
    query = ["--text", "... [?] ..."]
    if entered.kind != "rows of text":  # each row has one target
        query = [f"NEW{_ending(config)}", "--interval", str(INTERVAL_LEVEL)]
    commands = [shlex.join(again), shlex.join(["numtok", "predict", model, *query])]
    low = board.place(board.winner).over_baseline.low
    if low is None or low <= 0:
        tables = [entered.tables[name] for name in ("", COLUMNS) if name in entered.tables]
        rows = [] if entered.records is None else [entered.records]
        commands += command_for(board.baseline, [*tables, *rows], *query)
    return commands


def _ending(config: Config) -> str:
    """Return the ending of the race's file, or .csv for an artifact."""
    return next(filter(config.inputs[0].endswith, FORMATS), ".csv")


def close_calls(
    rounds: Sequence[RoundResult], plan: Plan, predictions: Callable[[str], ReportPredictions]
) -> Iterator[str]:
    """Yield a sentence for each round in which the last survivor and the first eliminated candidate
    did not differ significantly. ``predictions`` reads those of a report.

    The difference of their skills is within noise if its interval, from a bootstrap over the
    validation rows, contains 0.
    """
    sizes = [planned.size for planned in [*plan.rounds, plan.last][1:]]
    for number, (result, size) in enumerate(zip(rounds, sizes, strict=True), 1):
        skills = {label: skill for label, skill in result.skills.items() if skill is not None}
        ordered = sorted(skills, key=lambda label: -skills[label])
        if len(ordered) <= size:
            continue
        pair = ordered[size - 1 : size + 1]
        survivor, cut = (
            in_fields(predictions(result.reports[label]), plan.guesses) for label in pair
        )
        assert survivor.field_median is not None
        apart = skill_apart([survivor], [cut], survivor._replace(prediction=survivor.field_median))
        if apart.low is not None and apart.high is not None and apart.low <= 0 <= apart.high:
            yield (
                f"Round {number} kept {pair[0]} (skill {skills[pair[0]]:z.3f}) over {pair[1]} "
                f"({skills[pair[1]]:z.3f}); the difference is within noise ({apart.low:z.3f} to "
                f"{apart.high:z.3f}). For a safer choice, increase --minutes."
            )


def reasons_of(
    validation: Leaderboard, test: Leaderboard, plan: Plan, verdicts: Sequence[Verdict]
) -> list[str]:
    """Return three sentences: what the winner achieves on the test split, why it was chosen on the
    validation split, and which other candidates took part."""
    return [
        _worth(test, plan),
        " ".join([_why_chosen(validation), *_which_seed(validation.place(validation.winner))]),
        _others(test, plan, verdicts),
    ]


def _worth(board: Leaderboard, plan: Plan) -> str:
    winner = board.place(board.winner)
    on = f"on {board.numbers:,} {board.split} numbers"
    seeds = f"mean of {plan.seeds} seeds" if plan.seeds > 1 else "one seed"
    skill, value = winner.over_baseline, winner.over_baseline.value
    if value is None:
        return f"The baseline {board.baseline} makes no error {on}: use it."
    if not board.beats_median:
        baseline = board.place(board.baseline)
        remedy = (
            f"Use the best baseline, {baseline.label} (skill {_interval(baseline.skill)})"
            if baseline.beats_median
            else "Predict the median"
        )
        return (
            f"No model is better than predicting the median {on}: the skill of {winner.label}, the "
            f"chosen model, is {_interval(winner.skill)} ({seeds}). {remedy}, or increase "
            "--minutes."
        )
    if skill.low is None or skill.high is None or skill.low <= 0 <= skill.high:
        return (
            f"{winner.label} and {board.baseline}, the best baseline, do not differ significantly "
            f"{on} (skill over {board.baseline}: {_interval(skill)}, {seeds}): the baseline may be "
            "all you need."
        )
    if value < 0:
        return (
            f"{winner.label} is the best model, but the baseline {board.baseline} is better {on} "
            f"(skill over {board.baseline}: {_interval(skill)}, {seeds}): use the baseline, or "
            "increase --minutes."
        )
    return (
        f"{winner.label} has {100 * value:.0f}% less error than {board.baseline}, the best "
        f"baseline, {on} (skill over {board.baseline}: {_interval(skill)}, {seeds})."
    )


def _why_chosen(board: Leaderboard) -> str:
    """Explain the choice on the validation split."""
    winner = board.place(board.winner)
    rivals = [entry for entry in board.places if entry.is_model and entry.label != winner.label]
    tied = [entry.label for entry in rivals if entry.tied]
    if tied:
        ties = f"On the validation split {winner.label} ties with {', '.join(tied)}"
        if winner.label != board.best:
            return (
                f"{ties}. It was chosen because its steps are at least {1 - CHEAPER:.0%} cheaper "
                f"than those of {board.best}, which has the highest skill."
            )
        return (
            f"{ties}. It was chosen for the highest skill "
            f"({_interval(winner.skill)}); no tied model is at least {1 - CHEAPER:.0%} cheaper per "
            "step."
        )
    if not rivals:
        return "No other model finished the last round."
    scored = [entry for entry in rivals if entry.skill.value is not None]
    if not scored:
        return "The skill of every other model in the last round is undefined."
    nearest = max(scored, key=lambda entry: entry.skill.value or 0.0)
    assert nearest.behind is not None  # the best is the winner, since nothing ties with it
    return (
        f"On the validation split it leads the runner-up, {nearest.label}, by "
        f"{_interval(nearest.behind)} in skill."
    )


def _which_seed(winner: Contestant) -> Iterator[str]:
    """Say which seed's model is returned, if there are several."""
    if len(winner.seed_skills) > 1:
        best = winner.best_seed
        yield (
            f"Seed {best} has the highest validation skill of its {len(winner.seed_skills)} seeds "
            f"({winner.seed_skills[best]:z.3f}); that model is returned."
        )


def _fields_read(entered: Entered, winner: str) -> Iterator[str]:
    """Say which fields the winner reads, if it reads columns and other fields are text."""
    [entry] = [each for each in entered.entries if each.label == winner]
    if entry.table == COLUMNS and entered.text_only:
        yield (
            f"{winner} reads only {_listed(entered.features)}; it does not read "
            f"{_listed(entered.text_only)}, which only text models read."
        )


def _listed(names: Sequence[str]) -> str:
    if len(names) > _MOST_NAMES:
        return f"{', '.join(names[:_MOST_NAMES])} and {len(names) - _MOST_NAMES} more"
    return ", ".join(names)


def _leaks(entered: Entered, board: Leaderboard) -> Iterator[str]:
    for label, artifact in entered.tables.items():
        if label in ("", COLUMNS):  # other tables have hidden states
            yield from leak_notes(board, read_table_of(artifact))


def _others(board: Leaderboard, plan: Plan, verdicts: Sequence[Verdict]) -> str:
    count = len(plan.candidates)
    last = sum(entry.is_model for entry in board.places)
    out = sum(not verdict.takes_part for verdict in verdicts)
    candidates = "candidate" if count == 1 else "candidates"
    parts = [f"{count} {candidates} raced; {count - last} were eliminated on the validation split"]
    ruled = "scheme or head was" if out == 1 else "schemes or heads were"
    parts += [f"{out} {ruled} left out"] if out else []
    parts += [f"{plan.left_out} were not started for lack of time"] if plan.left_out else []
    return "; ".join(parts) + "."


def _interval(figure: Figure) -> str:
    if figure.value is None:
        return "unknown"
    if figure.low is None or figure.high is None:
        return f"{figure.value:z.3f}"
    return f"{figure.value:z.3f}, 95% interval {figure.low:z.3f} to {figure.high:z.3f}"
