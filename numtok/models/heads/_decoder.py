"""A small causal transformer that generates the tokens of a number from one feature vector.

The projected feature vector is its first position, followed by the tokens: the output at position k
predicts token k. The allowed next tokens depend on a few states of the codec (``automaton``), kept
as tables on the device.

Shapes: N numbers, K tokens per number, V vocabulary of the codec, S states, D width, U prefixes.
"""

from typing import cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional as F

from numtok.encoding.automaton import Automaton
from numtok.encoding.normalizers.base import Scaling
from numtok.encoding.schemes.base import Scheme
from numtok.models.attention import Cache, Shape, Transformer
from numtok.models.distributions.decoded import DecoderDistribution
from numtok.models.distributions.predictive import Predictive
from numtok.models.heads.base import Calibration, TokenReader, tiled
from numtok.models.precision import widened

_INIT = 0.02


class DecoderReader(TokenReader):
    """Map feature vectors [N, D of the trunk] to parameters [N, D], the first position."""

    def __init__(
        self, width: int, scheme: Scheme, automaton: Automaton, shape: Shape, masked: bool
    ) -> None:
        super().__init__()
        self.scheme = scheme
        self.automaton = automaton
        self.masked = masked
        self.tokens_per_number = shape.context
        vocabulary = automaton.next.shape[1]
        self.project = nn.Linear(width, shape.width)
        self.table = nn.Embedding(vocabulary, shape.width)
        nn.init.normal_(self.table.weight, std=_INIT)
        self.trunk = Transformer(shape, causal=True)
        self.out = nn.Linear(shape.width, vocabulary)
        # Not part of the model's weights: the codec provides them.
        for name in ("next", "order", "rank"):
            self.register_buffer(name, torch.from_numpy(getattr(automaton, name)), persistent=False)

    def forward(self, hidden_ND: Tensor) -> Tensor:
        projected: Tensor = self.project(hidden_ND)
        return projected.float()

    def losses(self, parameters_NP: Tensor, targets_NW: Tensor) -> Tensor:
        """[N]: the cross-entropy of all tokens together, -log p of the number, in nats."""
        tokens_NK, states_NK = targets_NW.chunk(2, dim=1)
        scores_NKV = self._scores(parameters_NP, tokens_NK, states_NK if self.masked else None)
        losses = F.cross_entropy(scores_NKV.flatten(0, 1), tokens_NK.flatten(), reduction="none")
        return losses.view(tokens_NK.shape).sum(dim=1)

    def token_losses(self, parameters_NP: Tensor, targets_NW: Tensor) -> Tensor:
        return self.losses(parameters_NP, targets_NW) / self.trunk.shape.context

    def log_probabilities(
        self, parameters_NP: Tensor, tokens_NK: Tensor, states_NK: Tensor
    ) -> Tensor:
        """float64[N, K, V], or float32 (``precision``): log-probabilities of each token given the
        tokens before it, normalized over the tokens that the codec allows."""
        scores_NKV = self._scores(tiled(parameters_NP), tiled(tokens_NK), tiled(states_NK))
        return widened(scores_NKV[: len(parameters_NP)]).log_softmax(dim=2)

    def _scores(self, parameters_NP: Tensor, tokens_NK: Tensor, states_NK: Tensor | None) -> Tensor:
        """[N, K, V]: logits; -inf for tokens that the codec states do not allow, or, without them,
        for tokens that no state allows."""
        x_NKD = torch.cat([parameters_NP[:, None], self.table(tokens_NK[:, :-1])], dim=1)
        scores_NKV: Tensor = self.out(self.trunk(x_NKD, None)).float()
        allowed_SV = self.get_buffer("next") >= 0
        allowed = allowed_SV.any(dim=0) if states_NK is None else allowed_SV[states_NK]
        return scores_NKV.masked_fill(~allowed, -torch.inf)

    @torch.no_grad()
    def point(self, parameters_NP: Tensor) -> NDArray[np.float64]:
        """float64[N]: the value of the greedily decoded tokens."""
        tokens, _ = self.beams(parameters_NP, 1)
        return self.values(tokens[:, 0])

    def predictive(
        self, parameters_NP: Tensor, calibration: Calibration, scaling: Scaling
    ) -> Predictive:
        return DecoderDistribution(self, parameters_NP, scaling)

    # --- tokens and numbers -----------------------------------------------------------------------

    def values(self, tokens_NK: Tensor) -> NDArray[np.float64]:
        """float64[N], normalized: the decoded values of complete numbers."""
        tokens = tokens_NK.cpu().numpy()
        lengths = np.full(len(tokens), tokens.shape[1], np.int32)
        return self.scheme.decode(tokens.astype(np.uint32).ravel(), lengths).values

    @torch.no_grad()
    def begun(self, parameters_NP: Tensor) -> "DecoderBeginnings":
        """Return the empty prefixes of all numbers."""
        return DecoderBeginnings(self, parameters_NP)

    @torch.no_grad()
    def beams(self, parameters_NP: Tensor, count: int) -> tuple[Tensor, Tensor]:
        """Return the most probable numbers by beam search: tokens [N, count, K] and log p [N,
        count].

        A count of 1 is greedy decoding. If there are fewer than ``count`` numbers, the remaining
        log p are -inf.
        """
        n, vocabulary = len(parameters_NP), len(self.table.weight)
        begun = self.begun(parameters_NP)
        at = torch.arange(n, device=parameters_NP.device)[:, None]  # [N, beams]
        log_p = begun.log_p.new_zeros((n, 1))
        tokens = at.new_zeros((n, 1, 0))
        for index in range(self.trunk.shape.context):
            every = (log_p[:, :, None] + begun.log_p[at]).flatten(1)  # [N, beams * V]
            log_p, best = every.topk(min(count, every.shape[1]), dim=1)
            beam, token = best // vocabulary, best % vocabulary
            tokens = torch.cat(
                [tokens.gather(1, beam[:, :, None].expand(-1, -1, index)), token[:, :, None]], dim=2
            )
            at = at.gather(1, beam)
            # Impossible beams continue with any allowed token; their probability stays 0.
            token = torch.where(begun.log_p[at, token] > -torch.inf, token, begun.first(at))
            if index + 1 < self.trunk.shape.context:
                at = begun.extend(at.flatten(), token.flatten()).view(at.shape)
        return tokens, log_p


class DecoderBeginnings:
    """``U`` distinct number prefixes, with the probabilities of their next tokens.

    Samples that are drawn together share many prefixes, so each prefix is computed once. Padding
    prefixes at the end fill the last tile; nothing refers to them.

    log_p
        float64[U, V], or float32 (``precision``): log-probabilities of the next token, normalized
        over the allowed tokens.
    state
        int64[U]: state of the codec's automaton.
    """

    def __init__(self, reader: DecoderReader, parameters_NP: Tensor) -> None:
        self._reader = reader
        parameters_NP = tiled(parameters_NP)
        rows = len(parameters_NP)
        self._cache = Cache(reader.trunk.shape, rows, reader.trunk.shape.context, parameters_NP)
        self._spent: Cache | None = None
        self.state = torch.zeros(rows, dtype=torch.int64, device=parameters_NP.device)
        hidden_NLD = reader.trunk.extend(parameters_NP[:, None], self._cache)
        self._cache.rewind(torch.ones_like(self.state), 1)
        self.log_p = self._read(hidden_NLD[:, 0])

    @torch.no_grad()
    def extend(self, which: Tensor, tokens: Tensor) -> Tensor:
        """Extend prefixes ``which`` (int64[M]) by tokens (int64[M]); both may repeat.

        Return int64[M]: the index of each extended prefix.
        """
        vocabulary = self.log_p.shape[1]
        pairs, now = torch.unique(which * vocabulary + tokens, return_inverse=True)
        pairs = tiled(pairs)
        before, token = pairs // vocabulary, pairs % vocabulary
        taken = self._cache.take(before, self._cache.tokens, self._spent)
        self._cache, self._spent = taken, self._cache
        self.state = self._reader.get_buffer("next")[self.state[before], token]
        hidden_ULD = self._reader.trunk.extend(self._reader.table(token)[:, None], self._cache)
        self.log_p = self._read(hidden_ULD[:, 0])
        return cast(Tensor, now)

    def first(self, which: Tensor) -> Tensor:
        """int64 like ``which``: the first token allowed after each prefix."""
        return self._reader.get_buffer("order")[self.state[which], 0]

    def _read(self, hidden_UD: Tensor) -> Tensor:
        scores_UV = widened(self._reader.out(hidden_UD))
        allowed = self._reader.get_buffer("next")[self.state] >= 0
        return F.log_softmax(scores_UV.masked_fill(~allowed, -torch.inf), dim=1)
