"""Generates result pages from the files in docs/results."""

import csv
import io
import math
import re
import statistics
from collections.abc import Callable, Iterator
from contextlib import redirect_stdout
from dataclasses import dataclass
from functools import cache, partial

from scipy.special import stdtrit

from docs.site.tables import RESULTS, Table, bare, spread_of
from docs.site.text import table
from numtok.cli.output.fidelity import print_fidelity
from numtok.cli.output.printing import Format
from numtok.evaluation.fidelity.counts import read_fidelity

BUDGETS = {
    "500 steps": "Equal samples: 500 steps of 64 rows",
    "12 seconds": "Equal time: 12 seconds of training on one core",
}
_METHODS = {  # methods with intervals, and their names in tables
    "mdn:5": "`mdn:5`, calibrated",
    "mdn:5, own quantiles": "`mdn:5`, own quantiles",
    **{name: name for name in ("mean", "median", "linear", "boosted", "tfidf", "boosted-text")},
}
_COMPARED = ("exact-match", "median-relative-error", "r2")
_FAIR = sorted(path.stem for path in (RESULTS / "fair-comparison").glob("*.csv"))
#: Parts of the fair comparison with fewer encodings.
_PARTIAL = ("artworks", "computers", "molecules", "sums-longer")
_ORACLES = ("quantization", "nearest")  # not baselines, because they use the true values
_INTERVAL = ("figure", "low", "high")
_SKILL = ("skill", "skill_low", "skill_high")
_OVER = ("over_baseline", "over_low", "over_high")
_WIDE = "---\nhide: [toc]\n---\n\n"  # hides the table of contents, so that tables have more space
_GOOD = 5  # an encoding is good at a data set if at most 4 others are better
_BAD = 0.05  # an encoding is bad at a data set if its skill is at most this


@dataclass(frozen=True, kw_only=True)
class Standing:
    """Skill of one encoding on one data set of the grand table."""

    budget: str
    encoding: str
    rank: str
    rank_sd: str
    data: str
    skill: float
    sd: str
    place: int


def _read(name: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO((RESULTS / name).read_text(encoding="utf-8"))))


@cache
def grand_table() -> list[Standing]:
    """Return all values of the grand table, with the rank of each within its column."""
    rows = _read("grand-table.csv")
    found = []
    for row in rows:
        better = sum(
            other["budget"] == row["budget"]
            and other["data"] == row["data"]
            and bool(other["rank"])
            and float(other["skill"]) > float(row["skill"])
            for other in rows
        )
        found.append(
            Standing(
                budget=row["budget"],
                encoding=row["encoding"],
                rank=row["rank"],
                rank_sd=row["rank_sd"],
                data=row["data"],
                skill=float(row["skill"]),
                sd=row["sd"],
                place=better + 1,
            )
        )
    return found


def standings(scheme: str) -> str:
    """Return what the grand table says about a scheme, as Markdown."""
    own = [one for one in grand_table() if _scheme_of(one.encoding) == scheme]
    if not own:
        return "The [grand table](../results/grand-table.md) does not include this scheme."
    count = len({one.encoding for one in grand_table() if one.rank})
    lines = [
        "From the [grand table](../results/grand-table.md): small models, three seeds, "
        f"{count} encodings, eight data sets. Skill is 1 - error / error of the median. "
        f"*Good at*: at most {_GOOD - 1} encodings are better. *Bad at*: skill of at most {_BAD}."
    ]
    rows = []
    for encoding in dict.fromkeys(one.encoding for one in own):
        for budget in BUDGETS:
            values = [one for one in own if (one.encoding, one.budget) == (encoding, budget)]
            good = [f"{one.data} {one.skill:.2f}" for one in values if one.place <= _GOOD]
            bad = [f"{one.data} {one.skill:.2f}" for one in values if one.skill <= _BAD]
            rank = values[0].rank or "not ranked"
            rows.append((f"`{encoding}`", budget, rank, ", ".join(good), ", ".join(bad)))
    columns = ("encoding", "budget", "mean rank", "good at", "bad at")
    return "\n\n".join([*lines, table(columns, rows)])


def _scheme_of(encoding: str) -> str:
    return encoding.partition(",")[0].partition(":")[0]


def pages() -> Iterator[tuple[str, str]]:
    """Yield the path and the text of each page."""
    yield "results/leaderboard.md", _WIDE + leaderboard()
    yield "results/fidelity.md", _WIDE + fidelity()


def leaderboard() -> str:
    """Return the page of all encodings, one sortable table per budget."""
    parts = [
        "# Leaderboard",
        "Skill of every encoding on eight data sets: 1 - error / error of the median of the train "
        "split; the mean of three seeds. Click a heading to sort. "
        "[The grand table](grand-table.md) describes data, models and findings, and links the "
        "standard deviations. "
        "Mean ranks closer than 17.1 may be due to chance (Nemenyi, 95%).",
    ]
    for budget, title in BUDGETS.items():
        columns, rows = skills(budget)
        shown = [[f"`{name}`", *map(bare, cells)] for name, *cells in rows]
        parts += [f"## {title}", table(columns, shown)]
    parts += ["## Real data sets with text", _real_sets()]
    return "\n\n".join(parts) + "\n"


def skills(budget: str) -> Table:
    """Return ranks and skills of the grand table at a budget, one row per encoding."""
    values = [one for one in grand_table() if one.budget == budget]
    data = list(dict.fromkeys(one.data for one in values))
    rows = []
    for encoding in dict.fromkeys(one.encoding for one in values):
        own = {one.data: one for one in values if one.encoding == encoding}
        rank = next(iter(own.values()))
        cells = [own.get(name) for name in data]
        skills = [spread_of(f"{one.skill:.2f}", "", "", one.sd) if one else "" for one in cells]
        rows.append([encoding, spread_of(rank.rank, "", "", rank.rank_sd), *skills])
    return Table(["encoding", "mean rank", *data], rows)


def best_ranks() -> Table:
    """Return the encodings with the best mean ranks at equal samples, and their ranks."""
    samples, time = map(skills, BUDGETS)
    rows = [[f"`{row[0]}`", row[1], time.cell(row[0], "mean rank")] for row in samples.rows[:6]]
    return Table(["encoding", "equal samples", "equal time"], rows)


def race_choices() -> Table:
    """Return the model that each race on real data chose, versus the best baseline."""
    found = _read("text-to-number.csv")
    rows = []
    for name in dict.fromkeys(row["set"] for row in found):
        own = [row for row in found if row["set"] == name]
        [model] = [row for row in own if row["winner"] == "True"]
        baselines = [row for row in own if row["is_model"] == "False"]
        best = max(baselines, key=lambda row: float(row["skill"]))
        cells = {
            "set": name,
            "test rows": f"{int(model['test']):,}",
            "chosen model": model["candidate"],
            "seconds": f"{float(model['seconds']):.0f}",
            "its skill": _rounded(model, *_SKILL, decimals=2),
            "best baseline": best["candidate"],
            "skill of the baseline": _rounded(best, *_SKILL, decimals=2),
            "model over baseline": _rounded(model, *_OVER, decimals=2),
        }
        rows.append(cells)
    return Table(list(rows[0]), [list(cells.values()) for cells in rows])


def coverage(order: str) -> Table:
    """Return the coverage of 90% intervals. For several splits, this is the mean and half of its
    95% interval by Student's t.
    """
    found = [row for row in _read("coverage.csv") if row["order"] == order]
    rows = []
    for name in dict.fromkeys(row["set"] for row in found):
        own = [row for row in found if row["set"] == name]
        values = [
            [float(row["coverage"]) for row in own if row["method"] == one] for one in _METHODS
        ]
        rows.append([name, str(len(values[0])), *map(_mean_of_splits, values)])
    return Table(["set", "splits", *_METHODS.values()], rows)


def _mean_of_splits(values: list[float]) -> str:
    if len(values) < 2:
        return "".join(f"{value:.3f}" for value in values)
    t = float(stdtrit(len(values) - 1, 0.975))
    half = t * statistics.stdev(values) / math.sqrt(len(values))
    return spread_of(f"{statistics.mean(values):.3f}", "", "", f"{half:.3f}")


def fair_comparison(data: str) -> Table:
    """Return the comparison of encodings on a data set, best first.

    Its source is the output of ``numtok sweep --format csv``.
    """
    rows = []
    for label, lines in _fair_results(data).items():
        skill = lines["field-skill"]
        cells = [_rounded(skill, "difference", "difference_low", "difference_high")]
        cells += [_rounded(lines[one], *_INTERVAL) if one in lines else "" for one in _COMPARED]
        rows.append((float(skill["figure"]), [label, _rounded(skill, *_INTERVAL), *cells]))
    rows.sort(key=lambda row: -row[0])
    columns = ["skill", "minus the best", "exact", "median relative error", "R2"]
    return Table(["encoding", *columns], [cells for _, cells in rows])


def fair_skill() -> Table:
    """Return the skill of all encodings on the short rows of the fair comparison, ordered by the
    mean over data sets.
    """
    cells: dict[str, dict[str, str]] = {}
    means: dict[str, list[float]] = {}
    short = [data for data in _FAIR if data not in _PARTIAL]
    for data in short:
        for label, lines in _fair_results(data).items():
            skill = lines["field-skill"]
            name = re.sub(r"^rt(,\w+=\d+)+", "rt", label)  # its settings are sized to each set
            cells.setdefault(name, {})[data] = _rounded(skill, *_INTERVAL)
            means.setdefault(name, []).append(float(skill["figure"]))
    ordered = sorted(cells, key=lambda name: -statistics.mean(means[name]))
    rows = [[name, *(cells[name].get(data, "") for data in short)] for name in ordered]
    return Table(["encoding", *short], rows)


def _fair_results(data: str) -> dict[str, dict[str, dict[str, str]]]:
    """Return the lines of each encoding on a data set, by metric. Models without an objective in
    their name train on the answer only; names in parentheses are baselines.
    """
    found: dict[str, dict[str, dict[str, str]]] = {}
    for line in _read(f"fair-comparison/{data}.csv"):
        if line["kind"] == "experiment":
            found.setdefault(_with_objective(line["label"]), {})[line["metric"]] = line
        elif line["kind"] == "baseline" and not line["label"].startswith(_ORACLES):
            found.setdefault(f"({line['label']})", {})[line["metric"]] = line
    return found


def _rounded(line: dict[str, str], *columns: str, decimals: int = 3) -> str:
    value, low, high = (line[name] and f"{float(line[name]):z.{decimals}f}" for name in columns)
    return spread_of(value, low, high, "")


def _with_objective(label: str) -> str:
    short = label.replace(", objective=ar:answer", "")
    return short if short != label else f"{label}, objective=mlm:targets"


def _real_sets() -> str:
    rows = [
        (
            row["set"],
            f"`{row['candidate']}`",
            "model" if row["is_model"] == "True" else "baseline",
            f"{float(row['skill']):.3f}",
            f"{float(row['skill_low']):.3f} to {float(row['skill_high']):.3f}",
            f"{float(row['mae']):.4g}",
        )
        for row in _read("text-to-number.csv")
    ]
    columns = ("data", "candidate", "kind", "skill", "95% interval", "MAE")
    return f"[Six real data sets](text-to-number.md) describes them.\n\n{table(columns, rows)}"


def fidelity() -> str:
    """Return the page that ``numtok fidelity --format md`` prints."""
    printed = io.StringIO()
    with redirect_stdout(printed):
        print_fidelity(read_fidelity(RESULTS), Format.MD)
    return printed.getvalue().replace("(papers)", "(papers/README.md)")


#: Tables for hand-written pages, by name.
DERIVED: dict[str, Callable[[], Table]] = {
    "equal-samples": partial(skills, "500 steps"),
    "equal-time": partial(skills, "12 seconds"),
    "best-ranks": best_ranks,
    "race-choices": race_choices,
    "coverage-random": partial(coverage, "random"),
    "coverage-time": partial(coverage, "time"),
    "fair-skill": fair_skill,
    **{f"fair-{data}": partial(fair_comparison, data) for data in _FAIR},
}
