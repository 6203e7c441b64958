"""The contract of a trunk: what lies between embeddings, or columns, and heads.

A trunk is a frozen dataclass of settings that builds a module. One of tokens (:class:`TokenTrunk`)
turns the vectors of an embedder into hidden states, of which state j predicts token j of the row;
one of columns (:class:`ColumnTrunk`) turns the features of a table's row into one state.

The contract was held against what a pretrained transformer of a library needs:

- *Its inputs are embeddings* (``inputs_embeds``): ``forward`` is given vectors, never ids.
- *A mask*: ``real``, False where a token is padding behind a row's end.
- *Causal or not*: what it can be is ``sight``, and ``build`` is told which of them to be.
- *Positions of its own*: it adds them itself, by the places in ``x`` and, behind a cache, by the
  cache's ``length``; ``context`` is how many it has, ``learns_positions`` whether they are weights.
- *A tied output table*: the token head is the embedder's table where a preset says ``tied=yes``,
  or the trunk does.
- *The ids of its own tokenizer*: these are the ids of text of the encoding, with its tokenizer as
  text tokenizer, behind special tokens and the scheme's. The module has no vectors of tokens: the
  embedder's table begins with them (``training.pretrained``), and ``keeps_vectors`` says whether
  they are trained.
- *A cache*: ``cache`` makes one of any kind that is a :class:`TrunkCache`, and ``extend`` fills it.

``build`` makes the same module whenever a model is read, of drawn weights: those that count come
from the model's artifact or, where training begins, from the folder that a preset names.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar, Literal, NamedTuple, cast, get_args

import torch
from torch import Tensor, nn

from numtok.plugins import Check, MemberCall, a, describe
from numtok.registry import Registry

Sight = Literal["either", "earlier", "all"]


class PretrainedWeights(NamedTuple):
    """What a pretrained model brings, float32 on the host.

    trunk
        The tensors of its trunk by the names that they have there.
    vectors
        [T, D]: of the ids of its tokenizer, and of ids behind those that mean nothing.
    outputs
        [T, D]: by which the ids are predicted; None where ``vectors`` do, or nothing does.
    """

    trunk: Mapping[str, Tensor]
    vectors: Tensor
    outputs: Tensor | None


class Trunk(ABC):
    """What every trunk says. Subclasses are final frozen dataclasses; their fields are settings."""

    revision: ClassVar[int]
    source: ClassVar[str]
    takes: ClassVar[Literal["tokens", "columns"]]

    @property
    @abstractmethod
    def width(self) -> int:
        """Coordinates of a state; of a trunk of tokens those of the embedder's vectors, too."""


class TokenTrunk(Trunk):
    """A trunk of texts: vectors [B, L, D] to hidden states [B, L, D]."""

    takes: ClassVar[Literal["tokens", "columns"]] = "tokens"
    #: Whether a preset names, behind ``:``, the pretrained model that it is.
    named: ClassVar[bool] = False
    #: Whether its states say what a row is, and no token of it.
    labels_only: ClassVar[bool] = False
    #: Whether its module has a ``cache`` and ``extend``, by which models write token by token.
    extends: ClassVar[bool] = False
    #: Whether its module may work states out again for their gradient (``recompute``).
    recomputes: ClassVar[bool] = False
    #: Whether PyTorch compiles its module, for any number of rows and tokens.
    compiles: ClassVar[bool] = False

    def of(self, source: str) -> "TokenTrunk":
        """The same of the pretrained model that lies at ``source``, of one that is ``named``."""
        raise NotImplementedError

    def weights(self, source: str) -> PretrainedWeights | None:
        """Those of the model there, with which training begins; None where they are drawn."""
        return None

    @property
    def words(self) -> int:
        """Of how many ids it begins with that model's vectors."""
        return 0

    @property
    def by_digits(self) -> bool:
        """Whether, beside those, the vector of a number's token begins as the mean of those of the
        characters that write it; else new vectors are drawn, distributed as the model's own."""
        return False

    @property
    def title(self) -> str:
        """What people know that model by, wherever it lies."""
        return ""

    @property
    def tied(self) -> bool:
        """Whether tokens are predicted by the table of their vectors, unless a preset says."""
        return False

    @property
    def keeps_vectors(self) -> bool:
        """Whether the vectors of the ids of text stay as they began, in both tables."""
        return False

    @property
    def sight(self) -> Sight:
        """What a state may see: all tokens of its row, those up to its own, or either as asked."""
        return "either"

    @property
    def context(self) -> int | None:
        """The most tokens of a row; 0: as many as are learnt (:meth:`reading`); None: any."""
        return None

    def reading(self, longest: int) -> "TokenTrunk":
        """The same for rows of up to so many tokens, where ``context`` is 0."""
        return self

    @property
    def learns_positions(self) -> bool:
        """Whether each position has weights, so that none is known that was not learnt."""
        return False

    @property
    def length_is_lost(self) -> str | None:
        """Why the length of a vector is not seen, and what to do; None where it is."""
        return None

    def uses(self) -> Mapping[str, object]:
        """What says how weights are used and shows in the shape of none, by the words for it."""
        return {}

    @abstractmethod
    def build(self, causal: bool) -> "TrunkModule":
        """The module; ``causal``: its states see the tokens up to their own alone."""


class ColumnTrunk(Trunk):
    """A trunk of tables: features [N, inputs] to one state a row, [N, D]."""

    takes: ClassVar[Literal["tokens", "columns"]] = "columns"

    @abstractmethod
    def build(self, inputs: int) -> "ColumnModule":
        """The module for so many features."""


class TrunkCache(ABC):
    """What a causal trunk keeps of the tokens that it has read, for B rows of up to T tokens.

    Rows may be of different lengths: ``length`` int64[B] says how much of each is filled, and
    ``longest`` the most of these, so that a device need not be asked. What stands behind is not
    looked at, and is written over.
    """

    length: Tensor
    longest: int

    @property
    @abstractmethod
    def rows(self) -> int:
        """B."""

    @property
    @abstractmethod
    def tokens(self) -> int:
        """T, the most tokens that fit."""

    @abstractmethod
    def take(self, rows: Tensor, tokens: int) -> "TrunkCache":
        """A copy of some rows (int64[B]), one as often as it is named, with room for ``tokens``."""

    def rewind(self, length: Tensor, longest: int) -> None:
        """Say how much of each row (int64[B]) is filled, and how much of the longest."""
        self.length, self.longest = length, longest


class FirstNorm(NamedTuple):
    """What a trunk makes of an embedding before anything else: LN(e + p).

    ``positions`` [P, D]: p, one of zeros where nothing is added.
    """

    norm: nn.LayerNorm
    positions: Tensor


class TrunkModule(nn.Module, ABC):
    """The weights of a :class:`TokenTrunk`.

    Shapes: B rows, L tokens, Q of them asked for, D width.
    """

    recompute = False

    @abstractmethod
    def forward(
        self, x_BLD: Tensor, real_BL: Tensor | None, asked_BQ: Tensor | None = None
    ) -> Tensor:
        """[B, L, D], or [B, Q, D] of the places ``asked`` for (int64).

        ``real_BL``: bool, False where a token is padding behind a row's end; None: none is. No
        real state depends on pads, nor on the other rows.
        """

    @abstractmethod
    def flops(self, rows: int, length: int, asked: int) -> int:
        """Of one forward pass over ``rows`` rows of ``length`` tokens, ``asked`` states of each
        wanted: matrix products; a multiplication and an addition count as two."""

    def in_turn(self) -> list[nn.Module]:
        """Its parts that run one after the other and are called alone, each of which a device can
        hold where all of it is too much; none where it is one."""
        return []

    def begin_with(self, tensors: Mapping[str, Tensor]) -> None:
        """Copy the weights of a pretrained model (:class:`PretrainedWeights`).

        ValueError where they are not those of the module.
        """
        raise NotImplementedError

    def whole(self, vectors_VD: Tensor, outputs_VD: Tensor) -> nn.Module | None:
        """A model of language of the library that such weights come from: this one between a table
        of token vectors and one by which tokens are predicted; None where there is no such."""
        return None

    def cache(self, rows: int, tokens: int, spent: TrunkCache | None = None) -> TrunkCache:
        """An empty one for rows of up to ``tokens``, or of the context where that is less.

        In the memory of another one that is ``spent``, if that is enough.
        """
        raise NotImplementedError

    def extend(self, x_BLD: Tensor, cache: TrunkCache, asked_BQ: Tensor | None = None) -> Tensor:
        """[B, L, D] or [B, Q, D]: states of further tokens, which see what the cache holds, and are
        added to it.

        Of an empty cache these are the first L of each row, and ``cache.rewind`` says afterwards
        how many of them are real; else one token a row. ``asked_BQ`` as in :meth:`forward`, for
        first tokens.
        """
        raise NotImplementedError

    def position_weights(self) -> int:
        """How many weights are of positions, which reports count with those of tokens."""
        return 0

    def first_norm(self) -> FirstNorm | None:
        """The norm that embeddings meet first; None where they meet none."""
        return None


class ColumnModule(nn.Module, ABC):
    """The weights of a :class:`ColumnTrunk`."""

    @abstractmethod
    def forward(self, x_NI: Tensor) -> Tensor:
        """[N, D] of features [N, inputs], each of its own row alone."""

    @abstractmethod
    def flops(self, rows: int) -> int:
        """Of one forward pass, as those of :class:`TrunkModule`."""


def asked_states(x_BLD: Tensor, asked_BQ: Tensor) -> Tensor:
    """[B, Q, D]: what stands at the places of each row that are asked for."""
    rows, length, width = x_BLD.shape
    first_B1 = torch.arange(0, rows * length, length, device=x_BLD.device)[:, None]
    flat = x_BLD.reshape(rows * length, width)
    return flat.index_select(0, (first_B1 + asked_BQ).flatten()).view(rows, -1, width)


def _sight(asked: MemberCall, answer: Any) -> Any:
    if answer not in get_args(Sight):
        allowed = ", ".join(map(repr, get_args(Sight)))
        raise asked.wrong(describe(answer), f"one of {allowed}")
    return answer


def _reading(asked: MemberCall, answer: Any) -> Any:
    return asked.one_of(answer, type(asked.thing))


def _built(asked: MemberCall, module: Any) -> Any:
    trunk = cast(Trunk, asked.thing)
    kind, checks = (ColumnModule, _COLUMNS) if trunk.takes == "columns" else (TrunkModule, _TOKENS)
    return asked.watching(asked.one_of(module, kind), checks, D=trunk.width)


def _states(asked: MemberCall, answer: Any) -> Any:
    x_BLD, _, *more = asked.given
    if more and more[0] is not None:
        return asked.array(answer, "Tensor float[B, Q, D]", B=len(x_BLD), Q=more[0].shape[1])
    return asked.array(answer, "Tensor float[B, L, D]", B=len(x_BLD), L=x_BLD.shape[1])


def _state(asked: MemberCall, answer: Any) -> Any:
    [x_NI] = asked.given
    return asked.array(answer, "Tensor float[N, D]", N=len(x_NI))


def _first_norm(asked: MemberCall, answer: Any) -> Any:
    if asked.one_of(answer, FirstNorm, type(None)) is not None:
        asked.one_of(answer.norm, nn.LayerNorm)
        asked.array(answer.positions, "Tensor float[P, D]")
    return answer


_TOKENS: dict[str, Check] = {
    "forward": _states,
    "flops": a(int),
    "cache": a(TrunkCache),
    "extend": _states,
    "position_weights": a(int),
    "in_turn": a(list),
    "first_norm": _first_norm,
}
_COLUMNS: dict[str, Check] = {"forward": _state, "flops": a(int)}
_TRUNK: dict[str, Check] = {
    "width": a(int),
    "of": _reading,
    "weights": a(PretrainedWeights, type(None)),
    "words": a(int),
    "by_digits": a(bool),
    "title": a(str),
    "tied": a(bool),
    "keeps_vectors": a(bool),
    "sight": _sight,
    "context": a(int, type(None)),
    "reading": _reading,
    "learns_positions": a(bool),
    "length_is_lost": a(str, type(None)),
    "uses": a(dict),
    "build": _built,
}

TRUNKS: Registry[Trunk] = Registry("numtok.models.trunks", "trunk", _TRUNK)
