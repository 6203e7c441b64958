"""Members of base classes: each serves two implementations or more.

A member that only one implementation needs belongs to a capability, a class of its own beside the
code that asks for it (``isinstance(trunk, PretrainedTrunk)``).
"""

from collections.abc import Iterator
from pathlib import Path
from sys import modules
from typing import Any, ClassVar, get_origin, get_type_hints

import pytest

import numtok
from numtok.models.objectives.base import OBJECTIVES, Objective
from numtok.models.trunks.base import TRUNKS, TokenTrunk, Trunk, TrunkModule
from numtok.registry import Registry

ROOT = Path(numtok.__file__).parent
#: Each contract: its base classes, the registry that imports what implements them, and the maximum
#: number of members.
CONTRACTS: dict[str, tuple[tuple[type, ...], Registry[Any], int]] = {
    "objective": ((Objective,), OBJECTIVES, 4),
    "trunk of tokens": ((Trunk, TokenTrunk), TRUNKS, 8),
    "module of a trunk": ((TrunkModule,), TRUNKS, 4),
}
_SAID = {"revision", "source"}  # facts about each implementation


def members(base: type) -> set[str]:
    """The members that a base class declares for its implementations."""
    hints = get_type_hints(base)
    own = vars(base).get("__annotations__", {})
    declared = {name for name in own if get_origin(hints[name]) is ClassVar}
    defined = {
        name for name, value in vars(base).items() if callable(value) or isinstance(value, property)
    }
    return {name for name in declared | defined if not name.startswith("_")} - _SAID


def below(base: type) -> Iterator[type]:
    """All subclasses in the package."""
    kinds: list[type] = base.__subclasses__()
    for kind in kinds:
        file = getattr(modules.get(kind.__module__), "__file__", None)
        if file is not None and Path(file).is_relative_to(ROOT):
            yield kind
        yield from below(kind)


@pytest.mark.parametrize("contract", CONTRACTS)
def test_each_member_has_two_implementers(contract: str) -> None:
    bases, registry, most = CONTRACTS[contract]
    for name in registry:
        assert registry[name]
    every = set().union(*map(members, bases))
    kinds = {*below(bases[-1])}
    for member in every:
        own = [
            kind
            for kind in kinds
            if member in vars(kind) or member in vars(kind).get("__annotations__", {})
        ]
        assert len(own) >= 2, f"{member}: {own}"
    assert len(every) <= most
