"""The contract of a trunk: what lies between embeddings, or columns, and heads.

A trunk is a frozen dataclass of settings that builds a module. A :class:`TokenTrunk` maps the
vectors of an embedder to hidden states; state j predicts token j of the row. A :class:`ColumnTrunk`
maps the features of a table's row to one state.

The contract has what every trunk needs:

- *Inputs are embeddings*: ``forward`` is given vectors, never ids.
- *A mask*: ``real`` is False where a token is padding after the end of a row.
- *Causal or not*: ``sight`` lists what the trunk supports; ``build`` takes the choice.
- *Positions are the trunk's own*: it adds them by the index in ``x`` and, after a cache, by the
  cache's ``length``. ``context`` is the number of positions.

Further abilities are classes of their own: :class:`CachedModule` for modules that write token by
token, and :class:`PretrainedTrunk` for models of a library.

``build`` draws weights. Those of a stored model come from its artifact; a pretrained trunk begins
with those of the folder that a preset names.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar, Literal, NamedTuple, cast

import msgspec
import torch
from torch import Tensor, nn

from numtok.declaration import settings_in
from numtok.registry import Registry, Settings

#: The tokens that a state may depend on: those up to its own, all, or either. "row": all, and each
#: state represents the whole row, so the trunk can only predict labels.
Sight = Literal["either", "earlier", "all", "row"]


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
    """A trunk. Subclasses are final frozen dataclasses; their fields are settings."""

    revision: ClassVar[int]
    source: ClassVar[str]

    @property
    @abstractmethod
    def width(self) -> int:
        """Coordinates of a state, and of the embedder's vectors."""


class TokenTrunk(Trunk):
    """A trunk of texts: vectors [B, L, D] to hidden states [B, L, D]."""

    #: Whether its module can recompute states for their gradient (``TrunkModule.recompute``).
    recomputes: ClassVar[bool] = False

    @property
    def sight(self) -> Sight:
        """The tokens that a state may depend on."""
        return "either"

    @property
    def context(self) -> int | None:
        """The maximum number of tokens in a row; None: any; 0: taken from the data, by replacing
        the field ``context``."""
        return None

    @property
    def length_is_lost(self) -> str | None:
        """Why the length of a vector has no effect, and what to do; None if it has one."""
        return None

    def uses(self) -> Mapping[str, object]:
        """Return settings that change how weights are used but not their shapes, by the words for
        them in a message."""
        return {}

    @abstractmethod
    def build(self, causal: bool) -> "TrunkModule":
        """Build the module; ``causal``: each state depends only on the tokens up to its own."""


class PretrainedTrunk(TokenTrunk):
    """A pretrained model of a library, which a preset names after ``:``.

    The text tokens of the encoding are the model's own, after special tokens and those of the
    scheme. The embedder's table begins with the model's vectors (``training.warm_start``).
    """

    @abstractmethod
    def of(self, source: str) -> "PretrainedTrunk":
        """Return the same settings for the model at ``source``."""

    @abstractmethod
    def weights(self, source: str) -> PretrainedWeights | None:
        """Read the weights at ``source``; None if they are to be drawn."""

    @property
    @abstractmethod
    def words(self) -> int:
        """The number of token vectors that the model brings."""

    @property
    @abstractmethod
    def by_digits(self) -> bool:
        """Whether the vector of a number's token begins as the mean of the vectors of its
        characters. Other new vectors are drawn like the model's own."""

    @property
    @abstractmethod
    def title(self) -> str:
        """A name of the model that does not depend on where it lies."""

    @property
    @abstractmethod
    def tied(self) -> bool:
        """Whether the table of token vectors predicts tokens, unless a preset says otherwise."""

    @property
    @abstractmethod
    def keeps_vectors(self) -> bool:
        """Whether the vectors of text tokens are not trained, in both tables."""

    @abstractmethod
    def begin(self, module: "TrunkModule", weights: PretrainedWeights) -> None:
        """Copy weights into a module of this trunk. Raises ValueError if they do not fit."""

    @abstractmethod
    def whole(
        self, module: "TrunkModule", vectors_VD: Tensor, outputs_VD: Tensor
    ) -> nn.Module | None:
        """Make a language model of the library: this module between two tables, of token vectors
        and of those that predict tokens. None if the library has no such model."""


def with_context(trunk: TokenTrunk, longest: int) -> TokenTrunk:
    """Set the context of a trunk that takes it from the data."""
    return replace(cast(Any, trunk), context=longest) if trunk.context == 0 else trunk


def stored_trunk(settings: Settings) -> Trunk:
    """Build a trunk from the settings in a file.

    Raises ValueError for missing settings (no default may replace one that was lost), unknown ones
    and values of other types; UsageError as ``Registry.from_settings``.
    """
    trunk = TRUNKS.from_settings(settings)
    known = [(key, one.type) for key, one in settings_in(type(trunk), learned=True).items()]
    own = {key: value for key, value in settings.items() if key not in ("name", "revision")}
    try:
        msgspec.convert(own, msgspec.defstruct("Trunk", known, forbid_unknown_fields=True))
    except msgspec.ValidationError as error:
        raise ValueError(f"the trunk {settings['name']}: {error}") from None
    return trunk


class ColumnTrunk(Trunk):
    """A trunk of tables: features [N, inputs] to one state a row, [N, D]."""

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

    recompute
        In training, recompute states for their gradient, to save memory. Only read if the trunk
        ``recomputes``.
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

    def in_turn(self) -> list[nn.Module]:
        """Return the parts that run one after the other, for devices that cannot hold all of them
        at once; none if there is one part."""
        return []

    def position_weights(self) -> int:
        """Count the trained weights of positions; reports add them to those of tokens."""
        return 0

    def first_norm(self) -> FirstNorm | None:
        """Return the norm that embeddings pass first, if there is one."""
        return None


class CachedModule(TrunkModule):
    """A causal module that keeps what it has read, so that models can write token by token."""

    @abstractmethod
    def cache(self, rows: int, tokens: int, spent: TrunkCache | None = None) -> TrunkCache:
        """Make an empty cache for rows of up to ``tokens``, or of the context if that is less.

        It reuses the memory of a cache that is ``spent``, if that is large enough.
        """

    @abstractmethod
    def extend(self, x_BLD: Tensor, cache: TrunkCache, asked_BQ: Tensor | None = None) -> Tensor:
        """[B, L, D] or [B, Q, D]: states of further tokens, which depend on the cache and are
        added to it.

        If the cache is empty, these are the first L tokens of each row, and ``cache.rewind`` says
        afterwards how many of them are real. Otherwise they are one token per row. ``asked_BQ``
        works as in :meth:`forward`, for first tokens.
        """


class ColumnModule(nn.Module, ABC):
    """The weights of a :class:`ColumnTrunk`."""

    @abstractmethod
    def forward(self, x_NI: Tensor) -> Tensor:
        """[N, D] of features [N, inputs], each of its own row alone."""


def asked_states(x_BLD: Tensor, asked_BQ: Tensor) -> Tensor:
    """[B, Q, D]: what stands at the places of each row that are asked for."""
    rows, length, width = x_BLD.shape
    first_B1 = torch.arange(0, rows * length, length, device=x_BLD.device)[:, None]
    flat = x_BLD.reshape(rows * length, width)
    return flat.index_select(0, (first_B1 + asked_BQ).flatten()).view(rows, -1, width)


TRUNKS = Registry[Trunk]("numtok.models.trunks", "trunk", Trunk)
