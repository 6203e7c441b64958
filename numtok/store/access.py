"""The methods of a store for code that stages call: lookup, drafts and notes."""

from collections.abc import Callable, Mapping, Sequence, Set
from contextlib import AbstractContextManager
from typing import Any, Protocol

from numtok.store.artifact import Artifact, Parent
from numtok.store.draft import Draft


class Making(Protocol):
    """Protocol for the settings of commands that make an artifact."""

    @property
    def restart(self) -> bool:
        """True to discard the draft of an earlier run and start over."""

    @property
    def force(self) -> bool:
        """True to make an existing artifact again and compare the new one with the old one."""


class StoreAccess(Protocol):
    """The methods of :class:`~numtok.store.store.Store` that make and find artifacts."""

    note: Callable[[str], None]

    def find(self, kind: str, name: str, version: str) -> Artifact | None:
        """Return the artifact, or None if it does not exist."""

    def resolve(self, ref: str, kinds: Set[str]) -> Artifact:
        """Return the artifact with this REF."""

    def draft(
        self,
        kind: str,
        name: str,
        settings: Mapping[str, Any],
        parents: Sequence[Parent],
        command: Sequence[str],
        how: Making | None = None,
    ) -> AbstractContextManager[Draft | Artifact]:
        """Yield a draft in which to make an artifact, or the artifact if it already exists."""
