"""Options that several stages have."""

from numtok.artifact import NAME
from numtok.errors import UsageError


def check_name(name: str | None) -> None:
    """Refuse a ``--name`` that no artifact can have; None is the default."""
    if name is not None and not NAME.fullmatch(name):
        raise UsageError(
            f"--name {name!r} cannot be used; allowed are lower-case letters, digits and "
            "._- after a first letter or digit"
        )
