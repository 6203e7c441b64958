"""HTML page of a race: the winner and why it won, the leaderboard, skill against cost, learning
curves, errors in the last round, all rounds, and the candidates that were ruled out."""

from collections.abc import Iterator, Mapping, Sequence

from numtok.analysis.panels.numbers import lined_up
from numtok.cli.output.figures import Formatted, amount, duration, figure, number, percentage, share
from numtok.cli.output.pages.charts import chart, cost_chart, error_charts, learning_charts, section
from numtok.cli.output.pages.compared import Compared
from numtok.cli.output.pages.differences import differences_section
from numtok.cli.output.pages.page import Headline, Page, PageChart, Part, Section
from numtok.cli.output.pages.parts import headline
from numtok.cli.output.printing import Sheet
from numtok.cli.output.race import accuracy_sheet, board_sheet, costs_sheet, legend, name_of
from numtok.evaluation.comparison.experiments import ExperimentCosts, costs_of
from numtok.evaluation.report_files import read
from numtok.names import counted
from numtok.reports import REPORT
from numtok.store.artifact import Resolve
from numtok.sweeps.race.candidates import Verdict
from numtok.sweeps.race.leaderboard import AccuracyRow, Leaderboard
from numtok.sweeps.race.plan import Plan
from numtok.sweeps.race.race import RaceResult
from numtok.sweeps.race.rounds import RoundResult

_DRAWN = 16  # candidates of the first round that have lines and dots
_SKILL = "skill"
_BUDGET = "steps or epochs"
_FIRST, _LAST = "first", "last"  # rounds: names of charts
_FIRST_COSTS = ("eval_seconds", "tokens_per_number")  # all train for the same time
_LAST_COSTS = ("train_seconds", "eval_seconds")


def race_page(result: RaceResult, resolve: Resolve) -> Page:
    """Return the HTML page of a race. The page for a dry run only shows what is known before
    training."""
    inputs = ", ".join(result.data)
    count = counted(len(result.entered), "candidate")
    board = result.leaderboard
    if board is None:
        return Page(
            kicker="numtok race",
            title=f"{count} for {inputs}",
            lead="Who would race, and who would not and why. Nothing was trained for this.",
            headlines=[],
            sections=list(_before(result)),
            notes=list(_notes(result)),
            made_by="numtok race DATA --dry-run --html FILE",
        )
    assert result.planned is not None
    raced = counted(len(result.planned.candidates), "candidate")
    again, predicts, *other = result.commands
    colours = _colours(result, board)
    return Page(
        kicker="numtok race",
        title=f"{board.winner}, chosen from {raced} for {inputs}"
        if board.beats_median
        else f"No model beats the median for {inputs}",
        lead=" ".join(result.reasons),
        following=("To predict new rows:", predicts),
        headlines=list(_headlines(board, result.accuracy)),
        sections=[*_raced(result, board, colours, resolve), *_before(result)],
        facts=[
            ("model", str(result.model)),
            *(("or to predict", command) for command in other),
            ("again", again),
            ("plan", str(result.plan)),
            *((one.label, ", ".join(one.reports)) for one in board.places if one.is_model),
        ],
        notes=list(_notes(result)),
        made_by=f"{again} --html FILE",
        legend=list(colours.items()),
    )


def _colours(result: RaceResult, board: Leaderboard) -> dict[str, int]:
    """Return a color index for each candidate that is drawn: the candidates of the last round, and
    the best of the first."""
    drawn = [one.label for one in board.places if one.is_model]
    for one in result.rounds[:1]:
        drawn += sorted(one.reports, key=lambda label: -max(one.tried[label].values()))
    unique = list(dict.fromkeys(drawn))[:_DRAWN]
    return {label: place for place, label in enumerate(unique)}


def _headlines(board: Leaderboard, accuracy: Sequence[AccuracyRow]) -> Iterator[Headline]:
    winner = board.place(board.winner)
    over = f"over {board.baseline}"
    for name, found, words in (
        (_SKILL, winner.skill, "1 - error / error of predicting the median"),
        (over, winner.over_baseline, "1 - error / error of the best baseline"),
    ):
        yield headline(name, figure(found), words)
    for model in accuracy[:1]:
        yield headline("R2", figure(model.r2), f"of the returned model (seed {model.seed})")
        words = f"of its 90% intervals, with a mean width of {number(model.width.value)}"
        if model.width.value is not None:
            yield headline("coverage", percentage(model.coverage), words)
    if winner.invalid.value:
        share_invalid = share(winner.invalid.value)
        yield Headline("invalid", share_invalid, "", "predictions that are not valid numbers")
    if winner.costs is not None:
        took = duration(winner.costs.train_seconds)
        yield Headline("training", took, "", f"per seed, {amount(winner.costs.steps)} steps")


# --- what came of it ---------------------------------------------------------------------------


def _raced(
    result: RaceResult, board: Leaderboard, colours: Mapping[str, int], resolve: Resolve
) -> Iterator[Section]:
    models = [one for one in board.places if one.is_model]
    reports = {one.label: one.reports for one in models}
    compared = Compared.read(reports, colours, resolve, _LAST, target=result.target)
    reported = result.rounds[0].reports if result.rounds else {}
    first = {
        label: [read(resolve(reported[label], {REPORT}))] for label in colours if label in reported
    }
    accuracy = [accuracy_sheet(result.accuracy)] if result.accuracy else []
    yield Section("board", "Leaderboard", "", [*accuracy, *_board(board, colours)])
    tried = [
        (label, costs_of(evaluations), (result.rounds[0].skills[label], None, None))
        for label, evaluations in first.items()
    ]  # on the validation split
    chosen_from = [
        (one.label, one.costs, (one.skill.value, one.skill.low, one.skill.high)) for one in models
    ]
    costs = [
        *_cost_charts(_FIRST, _FIRST_COSTS, tried, colours),
        *_cost_charts(_LAST, _LAST_COSTS, chosen_from, colours),
    ]
    learnt = [
        *learning_charts(_FIRST, first, colours, resolve, "First round: loss"),
        *learning_charts(_LAST, compared.evaluations, colours, resolve, "Last round: loss"),
    ]
    in_fields = any(one.report.fields for one in compared.firsts.values())
    errors = list(error_charts(compared, "field-skill" if in_fields else "median-relative-error"))
    of_some = ""
    if left := len(reported) - len(first):
        of_some = f"Only the {len(first)} best of the first round are drawn ({left} are not)."
    chosen = (
        "The last round is shown on the test split. The winner was chosen on the validation split, "
        "by skill and, in a tie, by the cost of a step."
    )
    yield from section("cost", "Skill against cost", f"{chosen} {of_some}".rstrip(), costs)
    text = f"One line per seed. {of_some}".rstrip()
    yield from section("learning", "Learning curves", text, learnt)
    yield from section("errors", "Errors of the last round", "First seed of each.", errors)
    yield from differences_section([compared], resolve, result.records)
    if result.rounds:
        yield Section("rounds", "Rounds", "", [_rounds(result, board)])


def _board(board: Leaderboard, colours: Mapping[str, int]) -> Iterator[Part]:
    yield board_sheet(board)
    yield costs_sheet(board)
    skills = {one.label: one.skill for one in board.places}
    panel = lined_up(skills, _SKILL, "label", colours)
    text = "Higher is better. Baselines are gray."
    yield from chart("skill", "Skill over the median", text, panel)
    # One row per field, since there may be many, for the models and the best baseline.
    shown = [one for one in board.places if one.is_model or one.label == board.baseline]
    rows = [[field, *(one.errors[field] for one in shown)] for field in board.fields]
    columns = ["field", *(name_of(one, board) for one in shown)]
    yield Sheet("mean absolute error by field", columns, rows)


def _cost_charts(
    name: str,
    keys: Sequence[str],
    found: Sequence[tuple[str, ExperimentCosts | None, Sequence[float | None]]],
    colours: Mapping[str, int],
) -> Iterator[PageChart]:
    """Draw the skill of the candidates of a round against costs. ``found`` has their labels, costs,
    and skills with intervals."""
    for key in keys:
        points = [
            (label, getattr(costs, key), value, low, high)
            for label, costs, (value, low, high) in found
        ]
        words = f"{_SKILL} in the {name} round"
        yield from cost_chart(f"{name}-cost-{key}", key, words, points, colours)


def _rounds(result: RaceResult, board: Leaderboard) -> Sheet:
    """Return a table of the budget and skill of each candidate in each round. Candidates of the
    last round come first."""
    assert result.planned is not None
    columns = ["candidate"]
    for place in range(1, len(result.rounds) + 1):
        columns += [f"round {place}: {_BUDGET}", f"round {place}: skill"]
    columns.append("rate")
    last = {one.label for one in board.places if one.is_model}

    def rank(label: str) -> tuple[bool, list[float]]:
        skills = [one.skills.get(label) for one in reversed(result.rounds)]
        return label not in last, [2.0 if one is None else -one for one in skills]

    labels = sorted(result.rounds[0].skills, key=rank)
    rows = [
        [
            label,
            *(cell for one in result.rounds for cell in _of_round(one, label)),
            result.rounds[0].rates.get(label),
        ]
        for label in labels
    ]
    note = (
        "Skill on the validation split, for one seed at the best learning rate. The leaderboard "
        "shows the last round."
    )
    picks = [f"label:{label}" for label in labels]
    return Sheet("All candidates, best first", columns, rows, picks=picks, note=note)


def _of_round(stage: RoundResult, label: str) -> list[object]:
    if label not in stage.skills:
        return [None, None]
    skill = stage.skills[label]
    return [stage.steps[label], "failed" if skill is None else Formatted(f"{skill:z.3f}", skill)]


# --- what is known before ----------------------------------------------------------------------


def _before(result: RaceResult) -> Iterator[Section]:
    words = "description"
    rows: list[list[object]] = [[one.name, one.numbers, one.words] for one in result.fields]
    sheet = Sheet("Numbers of the data", ["field", "numbers", words], rows, words=[words])
    yield Section("fields", "Numbers by field", "", [sheet])
    what = "scheme or head"
    rows = [
        [one.scheme, _took_part(one, result.planned), one.reason]
        for one in sorted(result.verdicts, key=lambda one: not one.takes_part)
    ]
    sheet = Sheet(f"Each {what}", [what, "candidate", "reason"], rows, words=["reason"])
    yield Section("verdicts", "Candidates, and what was ruled out", "", [sheet])


def _took_part(verdict: Verdict, plan: Plan | None) -> Formatted:
    """Return whether a scheme or head is a candidate; after the race, whether it was trained."""
    if not verdict.takes_part:
        return Formatted("no", 0)
    if plan is None:
        return Formatted("yes", 2)
    name, _, table = verdict.scheme.partition(" on ")
    for each in plan.candidates:
        if each.scheme == name and each.label.partition(" on ")[2] == table:
            return Formatted("raced", 2)
    return Formatted("not started", 1)


def _notes(result: RaceResult) -> Iterator[str]:
    yield from result.notes
    if result.leaderboard is not None:
        yield from legend(result, result.leaderboard)
    if result.planned is not None:
        yield from (f"{label} was ruled out: {why}" for label, why in result.planned.unfit.items())
        if left := result.planned.left_out:
            yield f"There was no time for {counted(left, 'candidate')}."
