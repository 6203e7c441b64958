"""The names in a registry, as listed at the end of messages."""

import pytest

from numtok.plugin_checks import registry_of


def known(kind: str) -> str:
    """Return ``Known: ar, classify, ...``, including plugins."""
    return f"Known: {', '.join(registry_of(kind))}"


def unlisted(caught: pytest.ExceptionInfo[Exception], *kinds: str) -> str:
    """Return a message for the snapshot, without the names that a new file would change."""
    text = str(caught.value)
    for kind in kinds:
        text = text.replace(", ".join(registry_of(kind)), f"every {kind}")
    return text
