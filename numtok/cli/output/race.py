"""Prints races: the candidates, a live table, the leaderboard and the winner."""

import sys
import textwrap
import threading
import time
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Self

from msgspec.structs import asdict

from numtok.cli.output.figures import amount, duration, ends, figure, percentage, score_cells, share
from numtok.cli.output.printing import (
    Format,
    Part,
    Sheet,
    Verbatim,
    one_line,
    print_result,
    width,
)
from numtok.cli.output.progress import Drawing
from numtok.evaluation.prediction_table import clusters_note
from numtok.names import counted
from numtok.sweeps.race.leaderboard import AccuracyRow, Contestant, Leaderboard
from numtok.sweeps.race.plan import CandidateState, RaceProgress
from numtok.sweeps.race.race import RaceResult

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.live import Live

_MINUTE = 60.0
_AROUND = 6  # lines of the terminal above and below the table
_MOST_COLUMNS = 20  # columns that are shown before a race; --json has all
_MOST_FIELDS = 12  # fields that are shown; --json has all
_NAMES = 28  # characters of a candidate in the live table


class Watching(Drawing):
    """Progress display for a race: a live table on a terminal, and elsewhere one line per run and
    one per minute."""

    def __init__(self, quiet: bool, seconds: float) -> None:
        self._seconds = seconds
        self._started = time.monotonic()
        self._last: RaceProgress | None = None
        self._ended = threading.Event()
        self._ticking = threading.Thread(target=self._tick, daemon=True)
        super().__init__(quiet)

    def made(self, console: "Console") -> "Live":
        """Return the live table without starting it."""
        from rich.live import Live

        return Live(
            get_renderable=lambda: self._shown(console),
            console=console,
            refresh_per_second=2,
            transient=True,
        )

    def __enter__(self) -> Self:
        if self._drawn is None and not self._quiet:
            self._ticking.start()
        return super().__enter__()

    def __exit__(self, *raised: object) -> None:
        self._ended.set()
        super().__exit__(*raised)
        if self._ticking.ident is not None:  # it was started
            self._ticking.join()

    def __call__(self, update: RaceProgress) -> None:
        self._last = update
        if update.line:
            self.say(one_line(update.line))

    def introduce(self, result: RaceResult) -> None:
        """Print the lines of :func:`introduction` before training starts."""
        for line in introduction(result):
            for folded in textwrap.wrap(
                one_line(line), width(sys.stderr), subsequent_indent="    "
            ):
                self.say(folded)

    def _tick(self) -> None:
        while not self._ended.wait(_MINUTE):
            if self._last is not None:
                self.say(one_line(f"{self._clock()}: {summary(self._last)}"))

    def _clock(self) -> str:
        minutes, seconds = divmod(round(time.monotonic() - self._started), 60)
        return f"{minutes}:{seconds:02d} of about {duration(self._seconds)}"

    def _shown(self, console: "Console") -> "RenderableType":
        from rich.console import Group
        from rich.text import Text

        if self._last is None:
            return Text(self._clock())
        head = Text(f"{self._clock()}  {self._last.doing}", no_wrap=True, overflow="ellipsis")
        if self._last.total:
            head.append(f"  {self._last.done:,} of {self._last.total:,}")
        if not self._last.standings:
            return head
        return Group(head, standings_table(self._last, console.height - _AROUND))


def standings_table(update: RaceProgress, rows: int) -> "RenderableType":
    """Return the live table of candidates, best first, with at most ``rows`` rows."""
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False)
    table.add_column("candidate", max_width=_NAMES, no_wrap=True, overflow="ellipsis")
    for name in ("", "budget", "validation skill"):
        table.add_column(name, justify="left" if not name else "right", no_wrap=True)
    for one in _in_order(update.standings)[: max(1, rows)]:
        skill = "-" if one.skill is None else f"{one.skill:z.3f}"
        budget = f"{one.steps:,} {one.unit}" if one.steps else "-"
        table.add_row(one.label, one.state, budget, skill)
    return table


def _in_order(standings: Sequence[CandidateState]) -> list[CandidateState]:
    """Return the candidates, best first; eliminated and failed candidates come last."""

    def rank(one: CandidateState) -> tuple[bool, float]:
        return one.state in ("out", "failed"), 2.0 if one.skill is None else -one.skill

    return sorted(standings, key=rank)


def summary(update: RaceProgress) -> str:
    """Return the progress as one line: ``round 1 of 3, 5 of 18; best so far xval, 0.412``."""
    shown = update.doing
    if update.total:
        shown += f", {update.done} of {update.total}"
    if update.standings and (best := _in_order(update.standings)[0]).skill is not None:
        shown += f"; best so far {best.label}, {best.skill:z.3f}"
    return shown


def introduction(result: RaceResult) -> list[str]:
    """Return the lines to print before training: data, candidates, unsuitable schemes and
    why they are unsuitable, and rounds."""
    train, validation, test = (f"{rows:,}" for rows in result.rows)
    lines = [
        f"{', '.join(result.data)}: {result.kind}, {train} for training, {validation} for "
        f"validation, {test} for the final test"
    ]
    lines += [f"  {column}" for column in result.columns[:_MOST_COLUMNS]]
    if (more := len(result.columns) - _MOST_COLUMNS) > 0:
        lines.append(f"  and {more} more columns (see --json)")
    for field in result.fields[:_MOST_FIELDS]:
        lines.append(f"  {field.name}: {counted(field.numbers, 'number')}, {field.words}")
    if (more := len(result.fields) - _MOST_FIELDS) > 0:
        lines.append(f"  and {more} more (see --json)")
    for title, takes_part in (("candidates:", True), ("left out:", False)):
        if verdicts := list(_verdicts(result, takes_part)):
            lines += [title, *verdicts]
    lines.append(f"{counted(len(result.entered), 'candidate')}: {'; '.join(result.entered)}")
    if result.expected:
        lines.append("planned rounds (to be adjusted once speeds are measured):")
    for place, one in enumerate(result.expected, 1):
        last = place == len(result.expected)
        name = "last round" if last else f"round {place}"
        of = f" with {counted(one.seeds, 'seed')}" if last else ""
        at = f" at {one.rates} learning rates" if one.rates > 1 else ""
        about = duration(float(f"{one.seconds:.2g}"))
        lines.append(f"  {name}: {counted(one.size, 'model')}{at}{of}, about {about} per run")
    return [*lines, *(f"note: {note}" for note in result.notes)]


def _verdicts(result: RaceResult, takes_part: bool) -> Iterator[str]:
    """Yield one line per reason, with the schemes it applies to."""
    alike: dict[str, list[str]] = {}
    for one in result.verdicts:
        if one.takes_part is takes_part:
            alike.setdefault(one.reason, []).append(one.scheme)
    for reason, schemes in alike.items():
        yield f"  {', '.join(schemes)}: {reason}"


# --- the result --------------------------------------------------------------------------------


_COLUMNS = ("kind", "label", "metric", "figure", "field", "low", "high", "n", "tied")


def print_race(result: RaceResult, format: Format, quiet: bool) -> None:
    """Print the result of a race, and the REF of the chosen model."""
    if format is Format.TABLE and result.leaderboard is None:
        return  # a dry run has printed its introduction
    records, parts = _records(result), _parts(result, format)
    print_result(format, result, _COLUMNS, records, parts, made=result.model, quiet=quiet)


def _parts(result: RaceResult, format: Format) -> Iterator[Part]:
    if format is Format.MD:
        yield Verbatim(f"- {line.strip()}" for line in introduction(result))
    if (board := result.leaderboard) is None:
        return
    yield board_sheet(board)
    fields = _largest(board)
    title = "mean absolute error by field"
    if (more := len(board.fields) - len(fields)) > 0:
        title += f" ({more} more: --json)"
    errors = [
        [name_of(contestant, board), *(contestant.errors[field] for field in fields)]
        for contestant in board.places
    ]
    yield Sheet(title, ["candidate", *fields], errors)
    yield costs_sheet(board)
    yield legend(result, board)
    if result.accuracy:
        yield accuracy_sheet(result.accuracy)
    yield result.reasons
    again, predicts, *other = result.commands
    yield Verbatim(
        [f"rerun: {again}", f"next:  {predicts}", *(f"or:    {command}" for command in other)]
    )


def board_sheet(board: Leaderboard) -> Sheet:
    """Return the leaderboard: a table of the skill of last-round candidates and baselines."""
    skill, skills = score_cells("skill", [contestant.skill for contestant in board.places])
    over, over_baseline = score_cells(
        f"over {board.baseline}", [one.over_baseline for one in board.places]
    )
    columns = ["candidate", skill, "behind best", over, "log-likelihood", "invalid"]
    title = f"leaderboard: {board.split} split, {counted(board.numbers, 'number')}"
    rows: list[list[object]] = []
    for one, own, against in zip(board.places, skills, over_baseline, strict=True):
        behind = "" if one.behind is None else figure(one.behind).marked(" tie" * one.tied)
        invalid = share(one.invalid.value) if one.is_model else None
        rows.append([name_of(one, board), own, behind, against, one.log_likelihood, invalid])
    picks = [f"label:{one.label}" for one in board.places]
    return Sheet(title, columns, rows, picks=picks, better={skill: "higher"})


def accuracy_sheet(accuracy: Sequence[AccuracyRow]) -> Sheet:
    """Return a table of R2, error and intervals of the returned model and the best baselines."""
    r2, scores = score_cells("R2", [each.r2 for each in accuracy])
    rows = []
    for each, score in zip(accuracy, scores, strict=True):
        own = f"({each.label})" if each.seed is None else f"{each.label}, seed {each.seed}"
        cells = [score, figure(each.mae), percentage(each.coverage), figure(each.width)]
        # Without the bootstrap intervals, which the report has, the table is short.
        rows.append([own, *(cell.alone for cell in cells)])
    columns = ["returned model, (baselines)", r2, "MAE", "90% coverage", "interval width"]
    return Sheet("the returned model on the test split", columns, rows)


def costs_sheet(board: Leaderboard) -> Sheet:
    """Return a table of costs for the models in the last round."""
    heads = ["candidate", "tokens/number", "params", "steps", "learning rate", "training"]
    heads.append("time per 1,000 predictions")
    rows: list[list[object]] = []
    for one in board.places:
        if (costs := one.costs) is not None:
            seconds = costs.eval_seconds
            per_thousand = None if seconds is None else 1000 * (seconds / board.numbers)
            row = [one.label, costs.tokens_per_number, amount(costs.parameters)]
            row += [amount(costs.steps), one.rate, duration(costs.train_seconds)]
            rows.append([*row, duration(per_thousand)])
    picks = [f"label:{row[0]}" for row in rows]
    return Sheet("costs, mean over seeds", heads, rows, picks=picks)


def _largest(board: Leaderboard) -> list[str]:
    """Return the fields with the most numbers, at most twelve, in the order of the leaderboard."""
    errors = board.place(board.winner).errors
    kept = sorted(board.fields, key=lambda field: -errors[field].n)[:_MOST_FIELDS]
    return [field for field in board.fields if field in kept]


def name_of(contestant: Contestant, board: Leaderboard) -> str:
    """Return the label of a contestant, marked with ``*`` if it is the winner, and in
    parentheses if it is a baseline."""
    if not contestant.is_model:
        return f"({contestant.label})"
    return f"{contestant.label} *" if contestant.label == board.winner else contestant.label


def legend(result: RaceResult, board: Leaderboard) -> list[str]:
    """Return sentences that explain the columns of the leaderboard, followed by notes."""
    lines = [
        "Skill = 1 - MAE / MAE of always predicting the median, averaged over fields (each "
        "clipped at -1).",
        f"over {board.baseline}: skill relative to {board.baseline}, the best baseline.",
        f"behind best: how far the skill is below that of {board.best}.",
    ]
    if any(entry.tied and entry.behind is not None for entry in board.places):
        lines.append("tie: the interval of 'behind best' contains 0.")
    lines.append(
        "Baselines are in parentheses. * marks the winner. Intervals: 95%, bootstrap over test "
        "rows and seeds."
    )
    return [*lines, *_remarks(result, board)]


def _remarks(result: RaceResult, board: Leaderboard) -> Iterator[str]:
    """Yield notes on numbers that are not scored and on runs that failed."""
    yield from board.notes
    scored = board.place(board.winner).skill.n
    if scored < board.numbers:
        yield (
            f"Skill covers {scored:,} numbers; {board.numbers - scored:,} more are in fields with "
            "too few numbers."
        )
    if board.clusters is not None:
        yield clusters_note(board.clusters)
    yield from result.close_calls
    yield from (f"{label} failed: {problem}" for label, problem in result.failed.items())


def _records(result: RaceResult) -> Iterator[dict[str, Any]]:
    row: dict[str, Any]
    units = {each.label: each.unit for each in result.planned.candidates} if result.planned else {}
    for place, one in enumerate(result.rounds, 1):
        for label, skill in one.skills.items():
            row = {"kind": f"round {place}", "label": label}
            yield row | {"metric": "skill", "figure": skill}
            yield row | {"metric": units[label], "figure": one.steps[label]}
            yield row | {"metric": "rate", "figure": one.rates.get(label)}
    for each in result.leaderboard.places if result.leaderboard is not None else ():
        kind = "model" if each.is_model else "baseline"
        row = {"kind": kind, "label": each.label, "tied": each.tied}
        figures = {
            "skill": each.skill,
            "over-baseline": each.over_baseline,
            "behind": each.behind,
            "r2": each.r2,
            "conformal-coverage": each.coverage if each.coverage.value is not None else None,
            "conformal-width": each.width if each.width.value is not None else None,
            "log-likelihood": each.log_likelihood if each.is_model else None,
            "invalid": each.invalid,
        }
        for metric, found in figures.items():
            if found is not None:
                yield row | {"metric": metric, "n": found.n} | ends(found)
        for field, error in each.errors.items():
            yield row | {"metric": "mae", "field": field, "n": error.n} | ends(error)
        if each.costs is not None:
            for what, value in asdict(each.costs).items():
                metric = what.replace("_", "-")
                yield {"kind": "cost", "label": each.label, "metric": metric, "figure": value}
