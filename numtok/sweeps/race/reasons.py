"""Why a race chose what it chose, in three sentences."""

from collections.abc import Sequence

from numtok.reports import Figure
from numtok.sweeps.race.candidates import Verdict
from numtok.sweeps.race.leaderboard import CHEAPER, Leaderboard
from numtok.sweeps.race.plan import Plan


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
