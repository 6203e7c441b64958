"""A whole model: embedder, trunk, token head and, for schemes with a value, a value head.

One that says labels has a class head in place of these heads.

``model.json`` holds its :class:`ModelSettings`; the weights lie beside it.
"""

from typing import Any, NamedTuple, cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional as F

from numtok.encoding.normalizers.base import (
    NORMALIZERS,
    FittedNormalizer,
    Scaling,
    Undone,
    stored_normalizer,
)
from numtok.errors import UsageError
from numtok.models.embedders.base import EMBEDDERS
from numtok.models.gated import Gated
from numtok.models.heads.base import HEADS, ValueHead, ValueReader, linear_flops, projection
from numtok.models.inputs import ModelInputs
from numtok.models.objectives.base import OBJECTIVES, Objective, TrainingBatch
from numtok.models.prefixed import Prefixed
from numtok.models.settings import ModelSettings
from numtok.models.trunks.base import TrunkCache, TrunkModule
from numtok.models.vocabulary import Vocabulary
from numtok.registry import spec_of


def _check_prefixes(objective: Objective, embedder: nn.Module, labels: bool) -> None:
    """Raise UsageError where prefixes would have to be written and nothing teaches that, or are to
    be learnt and there are none."""
    prefixed = isinstance(embedder, Prefixed)
    if objective.passes is not None and not prefixed:
        raise UsageError(
            f"--objective {spec_of(objective)} projects the vectors of <num>, which --embedder "
            "numvalue makes; give that one, or --objective ar"
        )
    if prefixed and objective.passes is None and objective.causal and not labels:
        raise UsageError(
            f"--embedder numvalue shows each number at its <num>, before it is written, and "
            f"--objective {spec_of(objective)} teaches nothing to stand there when the model "
            "writes; give --objective numvalue"
        )


class Losses(NamedTuple):
    """Means over what is predicted: tokens in nats, values in units of their head's own, over the
    numbers or, where the head says so (``per_token``), over the tokens.

    Without a value head ``value`` is 0. Labels count as tokens. ``projected`` is None but for
    models that project prefixes.
    """

    token: Tensor
    value: Tensor
    projected: "ProjectedLosses | None" = None


class ProjectedLosses(NamedTuple):
    """What a model that projects prefixes learns besides (``objectives.numvalue``).

    token
        L_proj, a mean over the tokens; 0 where there is no second pass.
    reconstruction
        L_rec without its weight, a mean over the prefixes that were projected.
    others
        The same of each proj(h) and the f(x) of another number, the next one in what is read at
        once: where it is as small, all f are alike, and the reconstruction says nothing.
    embedding_norm, projection_norm
        The mean lengths of f(x) and proj(h), over the same. Nothing is learnt by these three.
    """

    token: Tensor
    reconstruction: Tensor
    others: Tensor
    embedding_norm: Tensor
    projection_norm: Tensor


class Model(nn.Module):
    """Tokens [B, L] and the values beside them [B, L] to hidden states, tokens and values."""

    def __init__(self, settings: ModelSettings, vocabulary: Vocabulary) -> None:
        """Raises UsageError where embedder or head cannot be with such a vocabulary."""
        super().__init__()
        self.settings = settings
        width = settings.width
        self.objective = OBJECTIVES.from_settings(settings.objective)
        self.head = None if settings.head is None else HEADS.from_settings(settings.head)
        self.embedder = EMBEDDERS.from_settings(settings.embedder).build(vocabulary, width)
        self.projection: Gated | None = None  # of the state before a prefix
        if self.objective.passes is not None:
            self.projection = Gated(width)
        _check_prefixes(self.objective, self.embedder, bool(settings.classes))
        self.trunk: TrunkModule = settings.of_trunk.build(self.objective.causal)
        if (vectors := self.trunk.token_vectors()) is not None:
            self._begin_with(vectors, vocabulary)
        if settings.classes:
            self.class_head = projection(width, len(settings.classes), 1, bias=True)
        else:
            words = projection(width, vocabulary.size, settings.head_layers, bias=False)
            if settings.tied:
                cast(nn.Linear, words).weight = self._table
            self.token_head = (
                words if self.head is None else self.head.tokens(words, vocabulary, width)
            )
        self.value_head: ValueReader | None = None
        if isinstance(self.head, ValueHead):
            self.value_head = self.head.build(width)
        scaling = settings.scaling
        fitted = (
            FittedNormalizer(NORMALIZERS.build("none"), {})
            if scaling is None
            else stored_normalizer(scaling["normalizer"], scaling["constants"])
        )
        #: From the values of the encoding to those of the head.
        self.scaling: Scaling = Undone(fitted) if scaling and scaling.get("undone") else fitted

    @property
    def _table(self) -> nn.Parameter:
        return self.embedder.get_parameter("table.weight")

    @torch.no_grad()
    def _begin_with(self, vectors_TD: Tensor, vocabulary: Vocabulary) -> None:
        """Have the vectors of the ids of text begin with a trunk's own; UsageError for another
        tokenizer's."""
        of_text = self._table[vocabulary.first_of_text :]
        if len(of_text) != len(vectors_TD):
            raise UsageError(
                f"--preset {self.settings.trunk['name']} has {len(vectors_TD):,} tokens of its "
                f"own, the text of these data {len(of_text):,}; encode them with its tokenizer"
            )
        of_text.copy_(vectors_TD)

    @property
    def values_per_token(self) -> bool:
        """Whether the loss of values is a mean over the tokens that are learnt, not the numbers."""
        return isinstance(self.head, ValueHead) and self.head.per_token

    @property
    def _first_head(self) -> nn.Module:
        """What is always there: the head of the classes where there are some, else of tokens."""
        return self.class_head if self.settings.classes else self.token_head

    def class_log_probabilities(self, example: TrainingBatch) -> Tensor:
        """[B, C], float32: of each class, for a batch whose rows are all asked (``ended``)."""
        given = self.given(example)
        hidden = self.hidden(given.tokens, given.values, given.real, given.asked)
        return F.log_softmax(self.class_head(given.predicting(hidden)).float(), dim=1)

    def hidden(
        self,
        tokens_BL: Tensor,
        values_BL: Tensor,
        real_BL: Tensor | None,
        asked_BQ: Tensor | None = None,
    ) -> Tensor:
        """[B, L, D]: state j predicts token j of the row (``nn.objectives.base``).

        [B, Q, D] of the places asked for, where those are given.
        """
        return cast(Tensor, self.trunk(self.embedder(tokens_BL, values_BL), real_BL, asked_BQ))

    def extend(
        self,
        tokens_BL: Tensor,
        values_BL: Tensor,
        cache: TrunkCache,
        asked_BQ: Tensor | None = None,
    ) -> Tensor:
        """As :meth:`hidden`, of rows that go on from what is in the cache."""
        return self.trunk.extend(self.embedder(tokens_BL, values_BL), cache, asked_BQ)

    def extend_written(
        self, tokens_B: Tensor, values_B: Tensor, cache: TrunkCache, said_BD: Tensor
    ) -> Tensor:
        """[B, D]: the states behind tokens that the model itself has written, in the states
        ``said``. A prefix that it wrote is seen as it was projected: what follows is not known."""
        embedded_B1D = self.embedder(tokens_B[:, None], values_B[:, None])
        if self.projection is not None:
            is_prefix_B11 = (tokens_B == self.prefix)[:, None, None]
            projected_BD = self.projection(said_BD).to(embedded_B1D.dtype)
            embedded_B1D = torch.where(is_prefix_B11, projected_BD[:, None], embedded_B1D)
        return self.trunk.extend(embedded_B1D, cache)[:, 0]

    @property
    def prefix(self) -> int:
        """The token before each number whose vector is made of the number's value."""
        assert isinstance(self.embedder, Prefixed)
        return self.embedder.prefix

    def losses(self, given: ModelInputs) -> Losses:
        """Token and value losses of a batch.

        Only the hidden states that predict something go through the heads.
        """
        if self.projection is not None:
            return self._losses_of_two_passes(given)
        hidden = self.hidden(given.tokens, given.values, given.real, given.asked)
        return self.losses_of(hidden, given)

    def _losses_of_two_passes(self, given: ModelInputs) -> Losses:
        passes, at_P = self.objective.passes, given.projected
        assert passes is not None and self.projection is not None and at_P is not None
        embedded_BLD = self.embedder(given.tokens, given.values)
        hidden_BLD = self.trunk(embedded_BLD, given.real, None)
        first = self.losses_of(hidden_BLD, given)
        flat = embedded_BLD.flatten(0, 1)
        value_PD = flat[at_P]
        projected_PD = self.projection(hidden_BLD.flatten(0, 1)[at_P - 1]).to(flat.dtype)
        token = torch.zeros_like(first.token)
        if passes.second:
            seen_BLD = flat.index_copy(0, at_P, projected_PD).view_as(embedded_BLD)
            again_BLD = self.trunk(seen_BLD, given.real, None)
            logits = self._first_head(given.predicting(again_BLD)).float()
            token = _cross_entropy(logits, given.labels) if len(given.labels) else logits.sum()
        f_PD, proj_PD = value_PD.float(), projected_PD.float()
        own_P = 1 - F.cosine_similarity(proj_PD, f_PD, dim=1)
        f_PD, proj_PD = f_PD.detach(), proj_PD.detach()
        others_P = 1 - F.cosine_similarity(proj_PD, f_PD.roll(-1, dims=0), dim=1)
        each = (own_P, others_P, f_PD.norm(dim=1), proj_PD.norm(dim=1))
        # The mean of nothing is not defined; its sum is 0.
        means = (one.mean() if len(at_P) else one.sum() for one in each)
        return first._replace(projected=ProjectedLosses(token, *means))

    def total(self, losses: Losses) -> Tensor:
        """What is learnt."""
        total = losses.token + losses.value
        if (passes := self.objective.passes) is not None and losses.projected is not None:
            total = total + passes.total(losses.projected.token, losses.projected.reconstruction)
        return total

    def losses_of(self, hidden: Tensor, given: ModelInputs) -> Losses:
        """As :meth:`losses`, of the states [B, Q, D] that :meth:`hidden` gave."""
        flat = hidden.flatten(0, 1)
        # Where nothing is predicted a mean is not defined. The sum of nothing is 0 and gives every
        # weight a gradient of 0, so that the optimizer counts the same steps for all of them.
        logits = self._first_head(given.predicting(hidden)).float()
        token = _cross_entropy(logits, given.labels) if len(given.labels) else logits.sum()
        value = torch.zeros_like(token)
        if self.value_head is not None:
            # Not in bfloat16, whose 8 bits are a grid that a value could not leave.
            with torch.autocast(flat.device.type, enabled=False):
                parameters = self.value_head(flat[given.number_where].float())
            if len(given.number_targets):
                each = self.value_head.losses(parameters, given.number_targets)
                value = each.sum() / len(given.labels) if self.values_per_token else each.mean()
            else:
                value = sum((0 * p.sum() for p in self.value_head.parameters()), parameters.sum())
        return Losses(token, value)

    def given(self, example: TrainingBatch) -> ModelInputs:
        """An example on the model's device."""
        return self.on_host(example).to(self._table.device)

    def on_host(self, example: TrainingBatch) -> ModelInputs:
        """An example with its numbers as the value head learns them, not yet on a device."""
        values, learnt = example.number_values, example.number_values[:, None]
        if isinstance(self.head, ValueHead) and len(values):
            learnt = self.head.targets(self.head_values(values, example.number_raw))
        if self.projection is None or example.projects_from is None:
            return ModelInputs.on_host(example, learnt)
        prefixes = example.tokens == self.prefix
        projected = prefixes & (np.arange(prefixes.shape[1]) >= example.projects_from[:, None])
        return ModelInputs.on_host(example, learnt, np.flatnonzero(projected & example.real))

    def head_values(
        self, values: NDArray[np.float32], raw: NDArray[np.float64] | None
    ) -> NDArray[np.float64]:
        """float64[N]: numbers as the value head has them, from those of the encoding, and as they
        are in the text: a head that learns these is given all their digits.

        Raises UsageError where it is, and the objective does not say them.
        """
        if isinstance(self.head, ValueHead) and self.head.raw:
            if raw is None:
                raise UsageError(
                    f"--head {spec_of(self.head)} learns numbers as they are in the text, and the "
                    f"examples of --objective {spec_of(self.objective)} have no `number_raw`; set "
                    "it where they are made, or give another head"
                )
            return raw
        return self.scaling.forward(values.astype(np.float64))

    def value_point(self, parameters_NP: Tensor) -> NDArray[np.float64]:
        """[N] the values, normalised as the encoding does, that a value head predicts."""
        assert self.value_head is not None
        return self.scaling.inverse(self.value_head.point(parameters_NP))

    def parameter_counts(self) -> tuple[int, int]:
        """Parameters in all, and of these in the tables of tokens and positions."""
        total = sum(parameter.numel() for parameter in self.parameters())
        return total, self._table.numel() + self.trunk.position_weights()

    def flops(self, example: TrainingBatch) -> int:
        """Of one forward pass, or of two where there is a second: multiplications and additions of
        matrix products.

        Pads count, and so do the pairs that causal attention leaves out: what is counted is the
        same for every kernel. A backward pass is two of the forward.
        """
        rows, length = example.tokens.shape
        asked, _, _ = example.asked
        if isinstance(self.embedder, Prefixed):
            embedder = self.embedder.flops(example.tokens)
        else:
            maps = [one for one in self.embedder.modules() if isinstance(one, nn.Linear)]
            embedder = sum(linear_flops(one, rows * length) for one in maps)
        heads = linear_flops(self._first_head, len(example.where))
        if self.value_head is not None:
            heads += self.value_head.flops(len(example.number_where))
        if self.projection is not None:  # the states of all places are needed
            heads += linear_flops(self.projection, int((example.tokens == self.prefix).sum()))
            asked = None
        trunk = self.trunk.flops(rows, length, length if asked is None else asked.shape[1])
        return embedder + trunk + heads + self.second_flops(example)

    def second_flops(self, example: TrainingBatch) -> int:
        """Of :meth:`flops` those of the second pass; 0 where there is none."""
        passes = self.objective.passes
        if passes is None or not passes.second:
            return 0
        rows, length = example.tokens.shape
        heads = linear_flops(self._first_head, len(example.where))
        return self.trunk.flops(rows, length, length) + heads


def _cross_entropy(logits_KV: Tensor, labels_K: Tensor) -> Tensor:
    """As ``F.cross_entropy``, for less memory and time: the gradient of the logits takes the place
    of the log-probabilities, instead of a table of zeros and another of the gradient."""
    return cast(Tensor, _CrossEntropy.apply(logits_KV, labels_K))  # type: ignore[no-untyped-call]


class _CrossEntropy(torch.autograd.Function):
    @staticmethod
    def forward(context: Any, logits_KV: Tensor, labels_K: Tensor) -> Tensor:
        log_KV = F.log_softmax(logits_KV, dim=1)
        context.save_for_backward(log_KV, labels_K)
        return F.nll_loss(log_KV, labels_K)

    @staticmethod
    def backward(context: Any, *given: Tensor) -> tuple[Tensor, None]:
        log_KV, labels_K = context.saved_tensors
        gradient_KV = log_KV.exp_()  # the probability, less 1 for what is right
        gradient_KV.scatter_add_(1, labels_K[:, None], -torch.ones_like(log_KV[:, :1]))
        return gradient_KV.mul_(given[0] / len(labels_K)), None
