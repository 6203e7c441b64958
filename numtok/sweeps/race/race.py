"""A race from data to a choice: looked at, entered, measured, planned, raced, decided.

All that it makes are artifacts, found again by whoever gives the same command: encoded data, the
plan, models, reports. A race that was stopped goes on where it stood.
"""

import shlex
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial

import msgspec

from numtok.declaration import command_line
from numtok.errors import UsageError
from numtok.evaluation.report_files import ReportPredictions, read
from numtok.reports import REPORT, Figure
from numtok.settings.race import Config as Config
from numtok.store.engines.engine import connected
from numtok.store.store import Store
from numtok.sweeps.race.candidates import Verdict
from numtok.sweeps.race.entrants import Encodings, Entered, enter_table, enter_texts, is_table
from numtok.sweeps.race.leaderboard import CHEAPER, Leaderboard
from numtok.sweeps.race.plan import PLAN, Expected, Plan, Progress, expected
from numtok.sweeps.race.planning import Planning, finalists_of, rates_of, time_of
from numtok.sweeps.race.rounds import RoundResult, Rounds
from numtok.sweeps.race.skill import in_slots, skill_apart
from numtok.sweeps.race.words import Slot
from numtok.sweeps.runs import Side, race_side


class RaceResult(msgspec.Struct, frozen=True, kw_only=True):
    """All of a race; of a dry run without what only running it tells.

    target
        Of texts the one that is scored, of a table's file the one that is predicted.
    plan
        REF of the plan.
    slots, verdicts, entered
        What the numbers are like; which schemes, or heads of tables, may take part and why; the
        labels of the candidates, those for which there was no time among them.
    expected
        The rounds of all of them.
    rows
        Of the train, validation and test split.
    validation, leaderboard
        The last round on the validation split, which decides the choice, and on the test split.
    winner, model
        The choice, and the REF of its model of the first seed.
    reasons
        Three sentences.
    close_calls
        A sentence for each round that eliminated a candidate by a difference within noise.
    commands
        What repeats the race, and what predicts with the model.
    failed
        By label why a candidate, or a seed of it, has no figures.
    """

    data: list[str]
    of_table: bool
    target: str | None
    minutes: float
    rows: tuple[int, int, int]
    slots: list[Slot]
    verdicts: list[Verdict]
    entered: list[str]
    expected: list[Expected]
    notes: list[str]
    plan: str | None = None
    planned: Plan | None = None
    rounds: list[RoundResult] = []
    validation: Leaderboard | None = None
    leaderboard: Leaderboard | None = None
    winner: str | None = None
    model: str | None = None
    reasons: list[str] = []
    close_calls: list[str] = []
    commands: list[str] = []
    failed: dict[str, str] = {}


def run(
    config: Config, store: Store, progress: Progress, told: Callable[[RaceResult], None]
) -> RaceResult:
    """Race, or go on with a race. ``told`` is what is known before anything is trained.

    Raises UsageError, DataError (no numbers, too few rows), StoreError, and where no candidate can
    be trained what stopped the first of them.
    """
    started = time.monotonic()
    with connected(config.engine) as nodes:
        return _raced(
            config, race_side(config, nodes), store, progress=progress, told=told, started=started
        )


def _raced(
    config: Config,
    side: Side,
    store: Store,
    *,
    progress: Progress,
    told: Callable[[RaceResult], None],
    started: float,
) -> RaceResult:
    of_table = is_table(config, store)
    there = (enter_table if of_table else enter_texts)(config, store, progress)
    result = _introduced(config, side, there)
    told(result)
    if config.dry_run:
        return result
    quiet = Store(store.root, lambda note: None, any_name=True)
    data = Encodings(config, there, quiet, progress)
    planning = Planning(
        config=config,
        there=there,
        data=data,
        store=quiet,
        side=side,
        progress=progress,
        started=started,
    )
    made = planning.stored()
    plan = PLAN.read(made.path)
    entries = {one.label: one for one in there.entries}
    artifacts = {one.data: data.of(entries[one.label]) for one in plan.candidates}
    deadline = max(started + config.seconds, time.monotonic() + config.seconds / 2)
    race = Rounds(
        config=config,
        plan=plan,
        data=artifacts,
        store=quiet,
        side=side._replace(threads=plan.threads),  # the last digits of a run depend on them
        progress=progress,
        replan=partial(planning.replanned, plan=plan, stored=made, deadline=deadline),
    )
    rounds, validation, board = race.run()
    model = board.place(board.winner).models[0]
    return msgspec.structs.replace(
        result,
        plan=made.ref,
        planned=plan,
        rounds=rounds,
        validation=validation,
        leaderboard=board,
        winner=board.winner,
        model=model,
        reasons=reasons_of(validation, board, plan, there.verdicts),
        close_calls=list(close_calls(rounds, plan, quiet, config.target)),
        commands=_commands(config, of_table, model),
        failed={label: str(problem) for label, problem in race.failed},
    )


def _introduced(config: Config, side: Side, there: Entered) -> RaceResult:
    """Describe the race before anything is trained; UsageError if no scheme takes part."""
    if not there.entries:
        raise UsageError(
            "no scheme may take part: "
            + "; ".join(f"{one.scheme} {one.reason}" for one in there.verdicts)
        )
    shape = finalists_of(config), config.seeds, rates_of(config, there.of_table)
    return RaceResult(
        data=list(config.inputs),
        of_table=there.of_table,
        target=config.target,
        minutes=config.seconds / 60,
        rows=there.rows,
        slots=there.slots,
        verdicts=there.verdicts,
        entered=[one.label for one in there.entries],
        expected=expected(time_of(config, side), len(there.entries), *shape),
        notes=there.notes,
    )


def _commands(config: Config, of_table: bool, model: str) -> list[str]:
    again = ["numtok", "race", *command_line(config)]
    asked = ["FILE.csv"] if of_table else ["--text", "... [?] ..."]
    return [shlex.join(again), shlex.join(["numtok", "predict", model, *asked])]


def close_calls(
    rounds: Sequence[RoundResult], plan: Plan, store: Store, target: str | None
) -> Iterator[str]:
    """Yield a sentence for each round whose last survivor and first one eliminated have skills with
    a difference whose interval, of a bootstrap over the validation rows, contains 0."""
    sizes = [one.size for one in [*plan.rounds, plan.last][1:]]
    for number, (one, size) in enumerate(zip(rounds, sizes, strict=True), 1):
        skills = {label: skill for label, skill in one.skills.items() if skill is not None}
        ordered = sorted(skills, key=lambda label: -skills[label])
        if len(ordered) <= size:
            continue
        pair = ordered[size - 1 : size + 1]
        reports = [read(store.resolve(one.reports[label], {REPORT})) for label in pair]
        survivor, cut = (
            in_slots(ReportPredictions.read(each).of_target(target), plan.guesses)
            for each in reports
        )
        assert survivor.slot_median is not None
        apart = skill_apart([survivor], [cut], survivor._replace(prediction=survivor.slot_median))
        if apart.low is not None and apart.high is not None and apart.low <= 0 <= apart.high:
            yield (
                f"Round {number}: {pair[0]} survived and {pair[1]} did not, with skills "
                f"{skills[pair[0]]:.3f} and {skills[pair[1]]:.3f}; the difference is within noise "
                f"({apart.low:.3f} to {apart.high:.3f}). Longer rounds: --minutes."
            )


def reasons_of(
    validation: Leaderboard, test: Leaderboard, plan: Plan, verdicts: Sequence[Verdict]
) -> list[str]:
    """Explain what the choice is worth on the test split, why validation chose it, and who else
    took part."""
    return [
        _worth(test, plan),
        _why_chosen(validation),
        _others(test, plan, verdicts),
    ]


def _worth(board: Leaderboard, plan: Plan) -> str:
    winner = board.place(board.winner)
    on = f"on {board.numbers:,} numbers of the split {board.split}"
    seeds = f"the mean of {plan.seeds} seeds" if plan.seeds > 1 else "of one seed"
    skill, value = winner.over_baseline, winner.over_baseline.value
    if value is None:
        return f"{board.baseline}, which needs no model, makes no error {on}: use that."
    if skill.low is None or skill.high is None or skill.low <= 0 <= skill.high:
        return (
            f"{winner.label} and {board.baseline}, the best baseline without a model, do not "
            f"differ significantly {on} (skill over {board.baseline} {_interval(skill)}, {seeds}): "
            "the baseline may be all you need."
        )
    if value < 0:
        return (
            f"{winner.label} was chosen among the models, but {board.baseline}, which needs none, "
            f"is better {on} (skill over {board.baseline} {_interval(skill)}, {seeds}): use that, "
            "or give more minutes."
        )
    return (
        f"{winner.label} has {100 * value:.0f}% less error than {board.baseline}, the best "
        f"baseline without a model, {on} (skill over {board.baseline} {_interval(skill)}, {seeds})."
    )


def _why_chosen(board: Leaderboard) -> str:
    """Explain the choice on the validation split."""
    winner = board.place(board.winner)
    others = [one for one in board.places if one.is_model and one.label != winner.label]
    tied = [one.label for one in others if one.tied]
    if tied:
        rule = (
            f"its steps are at least {1 - CHEAPER:.0%} cheaper than those of {board.best}"
            if winner.label != board.best
            else f"none of them is at least {1 - CHEAPER:.0%} cheaper"
        )
        return f"It was chosen among ties on the validation split, with {', '.join(tied)}: {rule}."
    if not others:
        return "No other model finished the last round."
    ahead = [one for one in others if one.skill.value is not None]
    if not ahead:
        return "The skill of every other model in the last round is undefined."
    nearest = max(ahead, key=lambda one: one.skill.value or 0.0)
    assert nearest.behind is not None  # the best is the winner, since nothing ties with it
    return (
        f"On the validation split it is ahead of the next, {nearest.label}, by "
        f"{_interval(nearest.behind)} of skill."
    )


def _others(board: Leaderboard, plan: Plan, verdicts: Sequence[Verdict]) -> str:
    count = len(plan.candidates)
    last = sum(one.is_model for one in board.places)
    out = sum(not one.takes_part for one in verdicts)
    parts = [f"{count} took part, of which {count - last} fell behind on the validation split"]
    ruled = "scheme or head is" if out == 1 else "schemes or heads are"
    parts += [f"{out} {ruled} ruled out"] if out else []
    parts += [f"for {plan.left_out} there was no time"] if plan.left_out else []
    return "; ".join(parts) + "."


def _interval(figure: Figure) -> str:
    if figure.value is None:
        return "unknown"
    if figure.low is None or figure.high is None:
        return f"{figure.value:.3f}"
    return f"{figure.value:.3f} [{figure.low:.3f}, {figure.high:.3f}]"
