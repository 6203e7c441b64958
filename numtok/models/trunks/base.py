"""The contract of a trunk: the layers between embeddings, or columns, and heads.

A trunk is a frozen dataclass of settings that builds a module. A :class:`TokenTrunk` maps the
vectors of an embedder to hidden states; state j predicts token j of the row. A :class:`ColumnTrunk`
maps the features of a table's row to one state.

The contract covers what every trunk needs:

- *Inputs are embeddings*: ``forward`` receives vectors, never ids.
- *A mask*: ``real`` is False where a token is padding after the end of a row.
- *Causal or not*: ``sight`` lists what the trunk supports; ``build`` takes the choice.
- *Positions belong to the trunk*: it adds them by the index in ``x`` and, after a cache, by the
  cache's ``length``. ``context`` is the number of positions.

Further abilities are separate classes: :class:`CachedModule` for modules that generate token by
token, and :class:`PretrainedTrunk` for models of a library.

``build`` initializes weights randomly. The weights of a stored model come from its artifact; a
pretrained trunk starts with those of the folder that a preset names.
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

#: Which tokens a state may depend on: "earlier" ones up to its own, "all", or "either". "row": all,
#: and each state represents the whole row, so the trunk can only predict labels.
Sight = Literal["either", "earlier", "all", "row"]


class PretrainedWeights(NamedTuple):
    """The weights of a pretrained model, float32 on the host.

    trunk
        The tensors of its trunk, by their names in the model.
    vectors
        [T, D]: input vectors of the tokenizer's ids, followed by those of unused ids.
    outputs
        [T, D]: output vectors that predict the ids; None if ``vectors`` are shared or there are
        none.
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
        """Width of the hidden states and of the embedder's vectors."""


class TokenTrunk(Trunk):
    """A trunk for texts: it maps vectors [B, L, D] to hidden states [B, L, D]."""

    #: True if its module can recompute states for their gradient (``TrunkModule.recompute``).
    recomputes: ClassVar[bool] = False

    @property
    def sight(self) -> Sight:
        """Which tokens a state may depend on."""
        return "either"

    @property
    def context(self) -> int | None:
        """Maximum number of tokens per row; None for any number; 0 if it is taken from the data, by
        replacing the field ``context``."""
        return None

    @property
    def length_is_lost(self) -> str | None:
        """Why the length of a vector has no effect, and what to do; None if it has an effect."""
        return None

    def uses(self) -> Mapping[str, object]:
        """Return settings that change how weights are used but not their shapes, by the words for
        them in a message."""
        return {}

    @abstractmethod
    def build(self, causal: bool) -> "TrunkModule":
        """Build the module; if ``causal``, each state depends only on the tokens up to its own."""


class PretrainedTrunk(TokenTrunk):
    """A pretrained model of a library, which a preset names after ``:``.

    The text tokens of the encoding are the model's own; they follow special tokens and the scheme's
    tokens. The embedder's table starts with the model's vectors (``training.warm_start``).
    """

    @abstractmethod
    def of(self, source: str) -> "PretrainedTrunk":
        """Return the same settings for the model at ``source``."""

    @abstractmethod
    def weights(self, source: str) -> PretrainedWeights | None:
        """Read the weights at ``source``; None if they are to be initialized randomly."""

    @property
    @abstractmethod
    def words(self) -> int:
        """Number of token vectors in the model."""

    @property
    @abstractmethod
    def by_digits(self) -> bool:
        """True if the vector of a number's token starts as the mean of its characters' vectors.

        Other new vectors are initialized like the model's own.
        """

    @property
    @abstractmethod
    def title(self) -> str:
        """Name of the model, independent of its location."""

    @property
    @abstractmethod
    def tied(self) -> bool:
        """True if the table of token vectors also predicts tokens, unless a preset overrides it."""

    @property
    @abstractmethod
    def keeps_vectors(self) -> bool:
        """True if the vectors of text tokens are frozen, in both tables."""

    @abstractmethod
    def begin(self, module: "TrunkModule", weights: PretrainedWeights) -> None:
        """Copy weights into a module of this trunk. Raises ValueError if they do not fit."""

    @abstractmethod
    def whole(
        self, module: "TrunkModule", vectors_VD: Tensor, outputs_VD: Tensor
    ) -> nn.Module | None:
        """Combine this module with the tables of input and output vectors into a language model of
        the library; None if it has no such model."""


def with_context(trunk: TokenTrunk, longest: int) -> TokenTrunk:
    """Set the context of a trunk that takes it from the data."""
    return replace(cast(Any, trunk), context=longest) if trunk.context == 0 else trunk


def stored_trunk(settings: Settings) -> Trunk:
    """Build a trunk from the settings in a file.

    Raises ValueError for missing settings (defaults must not replace lost values), unknown settings
    and values of wrong types; UsageError as ``Registry.from_settings`` does.
    """
    trunk = TRUNKS.from_settings(settings)
    fields = [
        (key, setting.type) for key, setting in settings_in(type(trunk), learned=True).items()
    ]
    own = {key: value for key, value in settings.items() if key not in ("name", "revision")}
    try:
        msgspec.convert(own, msgspec.defstruct("Trunk", fields, forbid_unknown_fields=True))
    except msgspec.ValidationError as error:
        raise ValueError(f"the trunk {settings['name']}: {error}") from None
    return trunk


class ColumnTrunk(Trunk):
    """A trunk for tables: it maps features [N, inputs] to one state per row, [N, D]."""

    @abstractmethod
    def build(self, inputs: int) -> "ColumnModule":
        """Return the module for the given number of features."""


class TrunkCache(ABC):
    """The state of a causal trunk after the tokens that it has read, for B rows of up to T tokens.

    Rows may differ in length: ``length`` int64[B] is the number of filled tokens per row, and
    ``longest`` their maximum, which saves a query to the device. Contents after them are ignored
    and overwritten.
    """

    length: Tensor
    longest: int

    @property
    @abstractmethod
    def rows(self) -> int:
        """Number of rows, B."""

    @property
    @abstractmethod
    def tokens(self) -> int:
        """Maximum number of tokens, T."""

    @abstractmethod
    def take(self, rows: Tensor, tokens: int) -> "TrunkCache":
        """Return a copy of the given rows (int64[B], may repeat), with room for ``tokens``."""

    def rewind(self, length: Tensor, longest: int) -> None:
        """Set the number of filled tokens of each row (int64[B]), and their maximum."""
        self.length, self.longest = length, longest


class FirstNorm(NamedTuple):
    """The first operation of a trunk on an embedding: LN(e + p).

    ``positions`` [P, D]: p, a single row of zeros if nothing is added.
    """

    norm: nn.LayerNorm
    positions: Tensor


class TrunkModule(nn.Module, ABC):
    """The weights of a :class:`TokenTrunk`.

    Shapes: B rows, L tokens, Q of them queried, D width.

    recompute
        Recompute states for their gradient during training, to save memory. Only used if the trunk
        ``recomputes``.
    """

    recompute = False

    @abstractmethod
    def forward(
        self, x_BLD: Tensor, real_BL: Tensor | None, asked_BQ: Tensor | None = None
    ) -> Tensor:
        """[B, L, D], or [B, Q, D] at the positions ``asked_BQ`` (int64).

        ``real_BL``: bool, False where a token is padding after the end of a row; None if there is
        no padding. Real states depend neither on padding nor on other rows.
        """

    def in_turn(self) -> list[nn.Module]:
        """Return the parts that run one after the other, for devices that cannot hold all of them
        at once; an empty list if there is a single part."""
        return []

    def position_weights(self) -> int:
        """Return the number of trained position weights; reports add them to those of tokens."""
        return 0

    def first_norm(self) -> FirstNorm | None:
        """Return the norm that embeddings pass first, if any."""
        return None


class CachedModule(TrunkModule):
    """A causal module with a cache of what it has read, so that models can generate tokens."""

    @abstractmethod
    def cache(self, rows: int, tokens: int, spent: TrunkCache | None = None) -> TrunkCache:
        """Return an empty cache for rows of up to ``tokens``, or of the context if that is less.

        It reuses the memory of the ``spent`` cache if that is large enough.
        """

    @abstractmethod
    def extend(self, x_BLD: Tensor, cache: TrunkCache, asked_BQ: Tensor | None = None) -> Tensor:
        """[B, L, D] or [B, Q, D]: the states of further tokens, which are added to the cache.

        If the cache is empty, these are the first L tokens of each row; afterwards ``cache.rewind``
        sets how many of them are real. Otherwise they are one token per row. ``asked_BQ`` works as
        in :meth:`forward`, for first tokens.
        """


class ColumnModule(nn.Module, ABC):
    """The weights of a :class:`ColumnTrunk`."""

    @abstractmethod
    def forward(self, x_NI: Tensor) -> Tensor:
        """[N, D]: states of features [N, inputs]; each depends only on its own row."""


def asked_states(x_BLD: Tensor, asked_BQ: Tensor) -> Tensor:
    """[B, Q, D]: the states at the queried positions of each row."""
    rows, length, width = x_BLD.shape
    first_B1 = torch.arange(0, rows * length, length, device=x_BLD.device)[:, None]
    flat = x_BLD.reshape(rows * length, width)
    return flat.index_select(0, (first_B1 + asked_BQ).flatten()).view(rows, -1, width)


TRUNKS = Registry[Trunk]("numtok.models.trunks", "trunk", Trunk)
