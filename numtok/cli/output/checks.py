"""What ``numtok schemes --check`` prints."""

from numtok.cli.output.printing import Format, print_table
from numtok.encoding.scheme_spec import scheme_of
from numtok.encoding.schemes.base import SCHEMES
from numtok.errors import NegativeVerdict


def print_checks(specs: list[str], format: Format) -> None:
    """Run the contract suite on each scheme; NegativeVerdict if one breaks it."""
    rows = []
    broken: dict[str, int] = {}
    for spec in specs:
        for result in SCHEMES.contract().check(scheme_of(spec)):
            rows.append((spec, result.name, "ok" if result.passed else "BROKEN", result.message))
            if not result.passed:
                broken[spec] = broken.get(spec, 0) + 1
    print_table("contract suite", ("scheme", "check", "result", "what broke"), rows, format)
    if broken:
        what = ", ".join(f"{spec} ({count} checks)" for spec, count in broken.items())
        raise NegativeVerdict(f"the contract of a scheme is broken by {what}; the table says where")
