"""Prints how the papers' results compare with our measurements."""

from collections import Counter
from collections.abc import Iterator, Sequence

import msgspec

from numtok.cli.output.printing import Format, Part, Sheet, print_result
from numtok.evaluation.fidelity.counts import Contradiction, Fidelity, JudgedClaim, TableCounts
from numtok.evaluation.fidelity.measured import PAPER
from numtok.evaluation.fidelity.verdicts import Judgment, OrderingVerdict, tie_limits

COLUMNS = Judgment.__struct_fields__
_MOST = 4  # orderings of a statement that are listed


def print_fidelity(fidelity: Fidelity, format: Format) -> None:
    """Print counts per table. Markdown also has the contradictions and the statements, CSV one row
    per ordering, and JSON everything."""
    records = map(msgspec.structs.asdict, fidelity.pairs)
    print_result(format, fidelity, COLUMNS, records, _parts(fidelity, page=format is Format.MD))


def _parts(fidelity: Fidelity, *, page: bool) -> Iterator[Part]:
    if page:
        yield ["# Fidelity"]
        yield [
            "The results of four papers, compared with measurements of numtok. `numtok fidelity "
            "--format md` writes this page from the files in [papers](papers) and from "
            "[claims.toml](claims.toml)."
        ]
    tables = (*fidelity.tables, fidelity.total)
    rows = [[one.table, one.printed, *one.verdicts.values()] for one in tables]
    yield Sheet("Orderings", ("table", "printed", *map(str, OrderingVerdict)), rows)
    yield [_summary(fidelity.total), _method()]
    if not page:
        yield _claims(fidelity.claims)
        return
    yield ["## Contradicted orderings"]
    columns = ("table", "where", "printed", "measured difference", "seeds", "why")
    yield Sheet("", columns, [*map(_contradiction, fidelity.contradictions)])
    yield ["## Statements in words"]
    heads = ("paper", "statement", "where", "printed", "measured", "orderings", "verdict", "why")
    yield Sheet("", heads, [*map(_statement, fidelity.claims)])


def _summary(total: TableCounts) -> str:
    reproduced, ties = (
        total.verdicts[verdict] for verdict in (OrderingVerdict.REPRODUCED, OrderingVerdict.TIE)
    )
    decided = reproduced + total.verdicts[OrderingVerdict.CONTRADICTED]
    return (
        f"Several seeds in the setting of the paper: {total.seeded:,} of {total.printed:,}. Of "
        f"these, {_share(decided + ties, total.seeded)} are decided or tied. "
        f"{_share(reproduced, decided)} of the decided are reproduced."
    )


def _share(part: int, whole: int) -> str:
    return f"{part / whole:.0%}" if whole else "none"


def _method() -> str:
    decades = tie_limits()["decades"]
    return (
        "An ordering is a pair of different values that a table prints, in one column, or for one "
        "data set where the columns are heads. Intervals are Welch's over seeds. Reproduced and "
        "contradicted: the interval excludes 0. Tie: it contains 0 and lies within the limits of "
        "the metric (ties.toml), such as 0.01 for R2. Values that span two decades are compared "
        f"by log10, with the limit {decades:g}. Of several budgets, that with the most seeds "
        "counts, then the largest."
    )


def _claims(claims: Sequence[JudgedClaim]) -> Sheet:
    rows: list[list[object]] = []
    for paper in dict.fromkeys(judged.claim.paper for judged in claims):
        verdicts = [judged.verdict for judged in claims if judged.claim.paper == paper]
        rows.append([paper, len(verdicts), *map(verdicts.count, OrderingVerdict)])
    return Sheet("Statements in words", ("paper", "statements", *map(str, OrderingVerdict)), rows)


def _contradiction(found: Contradiction) -> list[object]:
    one = found.judgment
    printed = f"{one.higher} > {one.lower}"
    return [one.table, one.where, printed, _interval(one), one.seeds, found.why]


def _statement(judged: JudgedClaim) -> list[object]:
    one = judged.claim
    row: list[object] = [one.paper, one.claim, one.where, one.printed, one.measured]
    return [*row, _orderings(judged), judged.verdict.value, one.why]


def _orderings(judged: JudgedClaim) -> str:
    """Describe the orderings of a statement, first those that decide its verdict."""
    ordered = sorted(judged.judgments, key=lambda each: each.verdict is not judged.verdict)
    texts = [_measured(each) for each in ordered[:_MOST]]
    if len(ordered) > _MOST:
        counts = Counter(each.verdict.value for each in ordered[_MOST:])
        texts.append("others: " + ", ".join(f"{count} {name}" for name, count in counts.items()))
    return "; ".join(texts)


def _measured(judgment: Judgment) -> str:
    text = f"{judgment.where}: {judgment.higher} - {judgment.lower}"
    if judgment.difference is None:
        return f"{text} {judgment.verdict}"
    seeds = f"{judgment.seeds} seed{'s'[: judgment.seeds != 1]}"
    setting = "" if judgment.setting == PAPER else f", {judgment.setting}"
    return f"{text} = {_interval(judgment)} ({seeds}{setting})"


def _interval(judgment: Judgment) -> str:
    unit = " decades" if judgment.logarithmic else ""
    value = f"{judgment.difference:.3g}"
    if judgment.low is not None:
        value += f" [{judgment.low:.3g}, {judgment.high:.3g}]"
    return value + unit
