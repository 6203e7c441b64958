"""Why a race chose what it chose, in three sentences."""

from collections.abc import Sequence

from numtok.reports import Figure
from numtok.sweeps.race.candidates import Verdict
from numtok.sweeps.race.leaderboard import Contestant, Leaderboard
from numtok.sweeps.race.plan import Plan


def reasons_of(board: Leaderboard, plan: Plan, verdicts: Sequence[Verdict]) -> list[str]:
    """What the choice is worth, why it and no other, and who else took part."""
    winner = board.place(board.winner)
    return [
        _worth(board, winner, plan),
        _before_others(board, winner),
        _others(board, plan, verdicts),
    ]


def _worth(board: Leaderboard, winner: Contestant, plan: Plan) -> str:
    on = f"on {board.numbers:,} numbers of the split {board.split}"
    seeds = f"the mean of {plan.seeds} seeds" if plan.seeds > 1 else "of one seed"
    skill, value = winner.over_baseline, winner.over_baseline.value
    if value is None:
        return f"{board.baseline}, which needs no model, makes no error {on}: use that."
    if skill.low is None or skill.high is None or skill.low <= 0 <= skill.high:
        return (
            f"{winner.label} is not told apart from {board.baseline}, the best of what needs no "
            f"model, {on} ({_interval(skill)}, {seeds}): that may be all you need."
        )
    if value < 0:
        return (
            f"{winner.label} is the best of the models, and {board.baseline}, which needs none, is "
            f"better {on} (skill {_interval(skill)}, {seeds}): use that, or give more minutes."
        )
    return (
        f"{winner.label} has {100 * value:.0f}% less error than {board.baseline}, the best of what "
        f"needs no model, {on} (skill {_interval(skill)}, {seeds})."
    )


def _before_others(board: Leaderboard, winner: Contestant) -> str:
    others = [one for one in board.places if one.is_model and one.label != winner.label]
    tied = [one.label for one in others if one.tied]
    if tied:
        told = ", ".join(tied)
        return (
            f"It ties with {told}: no difference from the best has an interval without 0, and of "
            "those that tie the one with the quickest steps is chosen."
        )
    if not others:
        return "No other was in the last round."
    nearest = max(others, key=lambda one: one.skill.value or 0.0)
    assert nearest.behind is not None
    return (
        f"The next, {nearest.label}, is behind by {_interval(nearest.behind)} of skill, which is "
        "no tie."
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
