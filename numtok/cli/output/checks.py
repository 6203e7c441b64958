"""Prints the results of ``numtok check`` and ``numtok schemes --check``."""

from collections import Counter
from collections.abc import Sequence

from numtok.cli.output.printing import Format, counted, print_table
from numtok.contracts import check_spec
from numtok.errors import NegativeVerdict


def print_checks(kind: str, specs: Sequence[str], format: Format) -> None:
    """Run the contract suite for a kind of part on each spec, and print the results. Raises
    NegativeVerdict if a check fails."""
    found = [(spec, result) for spec in specs for result in check_spec(kind, spec)]
    rows = [
        (spec, result.name, "ok" if result.passed else "BROKEN", result.message)
        for spec, result in found
    ]
    broken = Counter(spec for spec, result in found if not result.passed)
    print_table("contract suite", (kind, "check", "result", "message"), rows, format)
    if broken:
        what = ", ".join(f"{spec} ({counted(count, 'check')})" for spec, count in broken.items())
        raise NegativeVerdict(f"{kind} contract not met: {what}. The table lists the failed checks")
