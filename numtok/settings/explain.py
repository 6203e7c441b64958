"""Settings of ``numtok explain``, which shows how a number is encoded or a text is
parsed."""

from dataclasses import KW_ONLY, dataclass

from numtok.declaration import CommandSettings, setting
from numtok.errors import UsageError
from numtok.settings import _fields


@dataclass(frozen=True)
class Config(CommandSettings):
    """Settings of ``numtok explain``; exactly one of ``number`` and ``text`` is set.

    If ``schemes`` is empty, all schemes that need no settings are shown.
    """

    number: str | None = setting(
        None, "Number as written in text, such as -60.2 or 6.02e23", argument=True
    )
    _: KW_ONLY
    text: str | None = setting(
        None,
        "Show which numbers are read in a text; - reads lines from standard input",
        may_be_empty=True,
    )
    schemes: tuple[str, ...] = setting(
        (), "Scheme to show; repeatable", flag="scheme", registry="schemes", shown_default="all"
    )
    numerals: str | None = _fields.numerals()
    not_numbers: tuple[str, ...] = _fields.not_numbers()

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.number is None and self.text is None:
            raise UsageError("pass a number or --text. Example: numtok explain 3.14")
        if self.text is not None and (self.number is not None or self.schemes):
            other = "a number" if self.number is not None else "--scheme"
            raise UsageError(f"--text cannot be combined with {other}. Remove one of them")
