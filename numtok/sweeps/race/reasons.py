"""Sentences about the result of a race: close calls between rounds, and reasons for the winner."""

from collections.abc import Callable, Iterator, Sequence

from numtok.data.tables.table import read_table_of
from numtok.evaluation.report_files import ReportPredictions
from numtok.names import counted
from numtok.reports import Figure
from numtok.sweeps.race.candidates import COLUMNS, Verdict
from numtok.sweeps.race.entrants import Entered
from numtok.sweeps.race.leaderboard import CHEAPER, Contestant, Leaderboard
from numtok.sweeps.race.leaks import leak_notes
from numtok.sweeps.race.plan import Plan
from numtok.sweeps.race.rounds import RoundResult
from numtok.sweeps.race.skill import in_fields, skill_apart

_MOST_NAMES = 8  # fields that a sentence lists


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
    if not skill.excludes_zero:
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


def _others(board: Leaderboard, plan: Plan, verdicts: Sequence[Verdict]) -> str:
    count = len(plan.candidates)
    last = sum(entry.is_model for entry in board.places)
    out = sum(not verdict.takes_part for verdict in verdicts)
    raced, lost = counted(count, "candidate"), count - last
    parts = [f"{raced} raced; {lost} were eliminated on the validation split"]
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


def notes_on_fields(entered: Entered, board: Leaderboard) -> Iterator[str]:
    """Yield which fields the winner reads, if it reads columns and other fields are text, and
    whether a field may contain the target."""
    [winner] = [entry for entry in entered.entries if entry.label == board.winner]
    if winner.table == COLUMNS and entered.text_only:
        yield (
            f"{winner.label} reads only {_listed(entered.features)}; it does not read "
            f"{_listed(entered.text_only)}, which only text models read."
        )
    for label, artifact in entered.tables.items():
        if label in ("", COLUMNS):  # other tables have hidden states
            yield from leak_notes(board, read_table_of(artifact))


def _listed(names: Sequence[str]) -> str:
    if len(names) > _MOST_NAMES:
        return f"{', '.join(names[:_MOST_NAMES])} and {len(names) - _MOST_NAMES} more"
    return ", ".join(names)
