"""What a registry holds, as messages end with it."""

from numtok.contracts import registry_of


def known(kind: str) -> str:
    """``known: ar, classify, ...``, of plugins too."""
    return f"known: {', '.join(registry_of(kind))}"
