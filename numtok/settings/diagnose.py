"""Settings of ``numtok diagnose``, which shows the parts of predicted numbers that are wrong."""

from dataclasses import dataclass

from numtok.declaration import CommandSettings, setting


@dataclass(frozen=True)
class Config(CommandSettings):
    """Settings of ``numtok diagnose``.

    target
        Target whose numbers are analyzed; None for all targets.
    digits
        Significant digits to which numbers are compared.
    top
        Number of overpredicted values to list.
    """

    reports: tuple[str, ...] = setting(help="REFs of reports", argument=True)
    target: str | None = setting(
        None, "Target whose numbers to analyze", metavar="NAME", single=True, shown_default="all"
    )
    digits: int = setting(3, "Significant digits to compare", at_least=1, at_most=17)
    top: int = setting(
        5, "Number of overpredicted values to list", metavar="K", at_least=1, at_most=200
    )
