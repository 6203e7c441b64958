"""Prints the results of ``numtok check`` and ``numtok schemes --check``."""

from collections.abc import Sequence

from numtok.cli.output.printing import Format, counted, print_table
from numtok.contracts import check_spec
from numtok.errors import NegativeVerdict


def print_checks(kind: str, specs: Sequence[str], format: Format) -> None:
    """Run the contract suite for a kind of part on each spec, and print the results. Raises
    NegativeVerdict if a check fails."""
    rows = []
    broken: dict[str, int] = {}
    for spec in specs:
        for result in check_spec(kind, spec):
            rows.append((spec, result.name, "ok" if result.passed else "BROKEN", result.message))
            if not result.passed:
                broken[spec] = broken.get(spec, 0) + 1
    print_table("contract suite", (kind, "check", "result", "message"), rows, format)
    if broken:
        what = ", ".join(f"{spec} ({counted(count, 'check')})" for spec, count in broken.items())
        raise NegativeVerdict(f"{kind} contract not met: {what}. The table lists the failed checks")
