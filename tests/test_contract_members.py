"""The contracts stay narrow: every member of a core has several implementers.

What only one kind of part needs is in a separate capability class. A part derives from it in
addition to its contract, and callers test for it with ``isinstance``.
"""

import ast
import inspect
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from sys import modules
from typing import Any

import pytest

import numtok
from numtok.encoding.schemes.base import (
    SCHEMES,
    ChannelScheme,
    FittedScheme,
    Scheme,
)
from numtok.encoding.whole_text import TextScheme
from numtok.models.embedders.base import (
    EMBEDDERS,
    Embedder,
    NumberModule,
)
from numtok.models.heads.base import (
    HEADS,
    CalibratedReader,
    Head,
    TokenHead,
    TokenReader,
    ValueHead,
    ValueReader,
)
from numtok.models.objectives.base import OBJECTIVES, Objective, OwnLosses
from numtok.models.presets import TrainingDefaults
from numtok.models.trunks.base import (
    TRUNKS,
    CachedModule,
    PretrainedTrunk,
    TokenTrunk,
    Trunk,
    TrunkModule,
)
from numtok.registry import Registry

PLUGINS = Path(__file__).parent / "plugins"
ROOT = Path(numtok.__file__).parent
#: The limit over all contracts: lower it, never raise it.
MOST_CAPABILITIES = 10
_FACTS = {"revision", "source"}  # about each implementation


@dataclass(frozen=True, kw_only=True)
class Contract:
    """The classes of one registry's contract.

    core
        A class, or a class and its bases, the most derived last.
    most
        Maximum number of members of the core.
    single
        Capabilities that only one part has, with its name.
    """

    registry: Registry[Any]
    core: tuple[type, ...]
    most: int
    capabilities: tuple[type, ...] = ()
    single: dict[type, str] = field(default_factory=dict)

    @property
    def parts(self) -> dict[str, type]:
        """Implementers of the core: the parts of the registry, or other subclasses."""
        found = {name: self.registry[name] for name in self.registry}
        of_core = {name: part for name, part in found.items() if issubclass(part, self.core[0])}
        if of_core:
            return of_core
        return {kind.__name__: kind for kind in below(self.core[-1])}


CONTRACTS = [
    Contract(
        registry=SCHEMES,
        core=(Scheme,),
        most=12,
        capabilities=(ChannelScheme, FittedScheme, TextScheme),
        single={FittedScheme: "bpe", TextScheme: "native"},
    ),
    Contract(
        registry=OBJECTIVES,
        core=(Objective,),
        most=4,
        capabilities=(OwnLosses,),
        single={OwnLosses: "numvalue"},
    ),
    Contract(
        registry=TRUNKS,
        core=(Trunk, TokenTrunk),
        most=8,
        capabilities=(PretrainedTrunk, TrainingDefaults),
        single={PretrainedTrunk: "hf"},
    ),
    Contract(registry=TRUNKS, core=(TrunkModule,), most=4, capabilities=(CachedModule,)),
    Contract(registry=EMBEDDERS, core=(Embedder,), most=4),
    Contract(registry=EMBEDDERS, core=(NumberModule,), most=2),
    Contract(
        registry=HEADS,
        core=(Head, ValueHead),
        most=8,
        capabilities=(TokenHead,),
    ),
    Contract(
        registry=HEADS,
        core=(ValueReader,),
        most=4,
        capabilities=(TokenReader, CalibratedReader),
    ),
]
each_contract = pytest.mark.parametrize(
    "contract", CONTRACTS, ids=lambda one: one.core[-1].__name__
)


def below(base: type) -> Iterator[type]:
    """Yield all subclasses in the package."""
    kinds: list[type] = base.__subclasses__()
    for kind in kinds:
        file = getattr(modules.get(kind.__module__), "__file__", None)
        if file is not None and Path(file).is_relative_to(ROOT):
            yield kind
        yield from below(kind)


def members(*kinds: type) -> list[str]:
    """Return the members that a subclass may define: public names that are not final."""
    names = []
    for kind in kinds:
        (body,) = ast.parse(textwrap.dedent(inspect.getsource(kind))).body
        assert isinstance(body, ast.ClassDef)
        for node in body.body:
            if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
                names.append(node.target.id)
            elif isinstance(node, ast.FunctionDef):
                final = any(ast.unparse(one) == "final" for one in node.decorator_list)
                names += [] if final else [node.name]
    kept = [name for name in names if not name.startswith("_") and name not in _FACTS]
    return list(dict.fromkeys(kept))


def implementers(contract: Contract, kind: type, member: str) -> list[str]:
    """Return the names of the parts that define a member instead of inheriting its default."""
    return [
        name
        for name, part in contract.parts.items()
        if issubclass(part, kind) and _defines(part, kind, member)
    ]


def _defines(part: type, kind: type, member: str) -> bool:
    own = part.__mro__[: part.__mro__.index(kind)]
    return any(
        member in vars(one)
        or member in inspect.get_annotations(one)
        or f"self.{member} = " in inspect.getsource(one)
        for one in own
    )


@each_contract
def test_a_core_has_few_members_and_each_has_several_implementers(contract: Contract) -> None:
    found = members(*contract.core)
    assert 0 < len(found) <= contract.most, found
    few = [one for one in found if len(implementers(contract, contract.core[-1], one)) < 2]
    assert not few, "what one part needs alone is a capability"


@each_contract
def test_a_capability_has_several_implementers_or_is_known_to_have_one(contract: Contract) -> None:
    for kind in contract.capabilities:
        for member in set(members(kind)) - set(members(*contract.core)):
            found = implementers(contract, kind, member)
            one = contract.single.get(kind)
            assert found == [one] if one else len(found) > 1, (kind.__name__, member, found)


def test_there_are_few_capabilities() -> None:
    assert sum(len(one.capabilities) for one in CONTRACTS) <= MOST_CAPABILITIES


def test_a_member_that_one_part_defines_is_found() -> None:
    class Wide(Scheme):
        @property
        def needs_text(self) -> bool:
            return False

        lonely: int = 0
        _own: int = 0

    assert members(Wide) == ["needs_text", "lonely"]
    contract = CONTRACTS[0]
    assert implementers(contract, FittedScheme, "fit") == ["bpe"]
    assert len(implementers(contract, Scheme, "encode")) == len(SCHEMES.names())
