"""Prints the leaderboard of ``numtok demo``."""

from collections.abc import Iterator

from numtok.cli.output.figures import Formatted, duration, metric_cells
from numtok.cli.output.printing import Part, Sheet, Verbatim
from numtok.cli.output.schemes import EXAMPLE, example_of
from numtok.reports import LIMITS
from numtok.sweeps.demo import METRICS, DemoResult

_SORTED_BY = METRICS[0]


def demo_parts(result: DemoResult) -> Iterator[Part]:
    """Yield the leaderboard, how to read it, and the next commands."""
    comparison, (part,) = result.comparison, result.comparison.parts

    def score(label: str) -> float:
        value = part.standings[label][_SORTED_BY].figure.value
        return float("-inf") if value is None else value

    experiments = sorted(comparison.experiments, key=lambda one: score(one.label), reverse=True)
    baselines = [one for one in part.baselines if not one.schemes and one.name not in LIMITS]
    (r2, scores, rest), (_, errors, other_errors) = (
        metric_cells(
            metric,
            [part.standings[one.label][metric].figure for one in experiments],
            [one.figures[metric].value for one in baselines],
            score_is_plain=True,
        )
        for metric in METRICS
    )
    rows: list[list[object]] = []
    for one, measured, error in zip(experiments, scores, errors, strict=True):
        time = (one.costs.train_seconds or 0.0) + (one.costs.eval_seconds or 0.0)
        tokens = one.costs.tokens_per_number
        row: list[object] = [one.label, example_of(one.scheme), Formatted(f"{tokens:.1f}", tokens)]
        rows.append([*row, measured, error.alone, duration(time)])
    rows.append(["baselines:", *[""] * 5])
    for baseline, measured, error in zip(baselines, rest, other_errors, strict=True):
        rows.append([f"  {baseline.name}", "", "", measured, error, ""])
    columns = ("encoding", f"{EXAMPLE} becomes", "tokens", r2, "error", "time")
    title = f"answers to sums, differences and products, {comparison.numbers:,} test rows"
    yield Sheet(title, columns, rows, picks=[one.label for one in experiments])
    yield [
        "r2 depends on the largest answers; error is the median relative error. Tokens per number "
        "and time are the cost of an encoding. Baselines need no trained model."
    ]
    best = experiments[0]
    yield Verbatim(
        [
            f"next: numtok predict {_name(result.models[best.scheme])} --text '(2.5 * 4) = [?]'",
            f"      numtok report {_name(best.reports[0])}",
            "      numtok explain -0.1435",
            "      numtok race YOUR.jsonl",
        ]
    )


def _name(ref: str) -> str:
    return ref.partition("@")[0]
