"""What a registry holds, as messages end with it."""

import pytest

from numtok.contracts import registry_of


def known(kind: str) -> str:
    """``known: ar, classify, ...``, of plugins too."""
    return f"Known: {', '.join(registry_of(kind))}"


def unlisted(caught: pytest.ExceptionInfo[Exception], *kinds: str) -> str:
    """A message for the snapshot, which a new file in a registry leaves as it is."""
    text = str(caught.value)
    for kind in kinds:
        text = text.replace(", ".join(registry_of(kind)), f"every {kind}")
    return text
