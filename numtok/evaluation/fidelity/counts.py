"""All verdicts on what four papers print: per ordering, per table and per statement."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import msgspec

from numtok.errors import UsageError
from numtok.evaluation.fidelity.claims import Claim, read_claims
from numtok.evaluation.fidelity.measured import Measured, by_cell, read_measurements
from numtok.evaluation.fidelity.orderings import printed_orderings
from numtok.evaluation.fidelity.verdicts import SEEDED, Judgment, OrderingVerdict, judge
from numtok.evaluation.published import names

OPEN = "open"
#: How the verdicts on the orderings of one statement combine: the first that occurs decides.
_WORST_FIRST = (
    OrderingVerdict.CONTRADICTED,
    OrderingVerdict.UNDECIDED,
    OrderingVerdict.TIE,
    OrderingVerdict.ONE_SEED,
    OrderingVerdict.OTHER_SETTING,
    OrderingVerdict.NOT_RUN,
    OrderingVerdict.REPRODUCED,
)


class TableCounts(msgspec.Struct, frozen=True, kw_only=True):
    """Number of orderings that a table prints, and number per verdict."""

    table: str
    printed: int
    verdicts: dict[str, int]

    @property
    def seeded(self) -> int:
        """Number of orderings with several seeds in the setting of the paper."""
        return sum(self.verdicts[verdict] for verdict in SEEDED)


class JudgedClaim(msgspec.Struct, frozen=True, kw_only=True):
    """A statement, its verdict, and the verdicts on its orderings."""

    claim: Claim
    verdict: OrderingVerdict
    judgments: list[Judgment]


class Contradiction(msgspec.Struct, frozen=True, kw_only=True):
    """A contradicted ordering, and its cause as far as an experiment has shown, as stated with a
    claim; otherwise "open"."""

    judgment: Judgment
    why: str


class Fidelity(msgspec.Struct, frozen=True, kw_only=True):
    """Verdicts on all printed orderings and statements.

    total
        Sum over all tables.
    """

    tables: list[TableCounts]
    total: TableCounts
    pairs: list[Judgment]
    contradictions: list[Contradiction]
    claims: list[JudgedClaim]


def read_fidelity(folder: Path) -> Fidelity:
    """Judge all printed orderings by the measurements in ``folder/papers``, and the statements in
    ``folder/claims.toml``.

    Raises UsageError if the folder does not exist, DataError if a file is wrong, and OSError if one
    cannot be read.
    """
    if not folder.is_dir():
        raise UsageError(
            f"folder {folder} not found. Run the command in a clone of numtok, or name its folder "
            "docs/results"
        )
    measured = by_cell(read_measurements(folder / "papers"))
    claims = read_claims(folder / "claims.toml")
    pairs = [judge(ordering, measured) for name in names() for ordering in printed_orderings(name)]
    tables = [_counts(name, [pair for pair in pairs if pair.table == name]) for name in names()]
    judged = [_judge_claim(claim, measured) for claim in claims]
    causes = {
        _pair(judgment): each.claim.why
        for each in reversed(judged)
        for judgment in each.judgments
        if each.claim.why
    }
    return Fidelity(
        tables=tables,
        total=_counts("all", pairs),
        pairs=pairs,
        contradictions=[
            Contradiction(judgment=pair, why=causes.get(_pair(pair), OPEN))
            for pair in pairs
            if pair.verdict is OrderingVerdict.CONTRADICTED
        ],
        claims=judged,
    )


def _pair(judgment: Judgment) -> tuple[str, str, frozenset[str]]:
    return judgment.table, judgment.where, frozenset((judgment.higher, judgment.lower))


def _counts(name: str, pairs: Sequence[Judgment]) -> TableCounts:
    found = Counter(pair.verdict for pair in pairs)
    verdicts = {verdict.value: found[verdict] for verdict in OrderingVerdict}
    return TableCounts(table=name, printed=len(pairs), verdicts=verdicts)


def _judge_claim(claim: Claim, measured: Measured) -> JudgedClaim:
    if claim.verdict is not None:
        return JudgedClaim(claim=claim, verdict=OrderingVerdict(claim.verdict), judgments=[])
    judgments = [judge(check.ordering(), measured) for check in claim.checks]
    verdicts = {judgment.verdict for judgment in judgments}
    verdict = next(verdict for verdict in _WORST_FIRST if verdict in verdicts)
    return JudgedClaim(claim=claim, verdict=verdict, judgments=judgments)
