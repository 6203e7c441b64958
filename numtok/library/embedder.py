"""``numtok.embedder``: a module that embeds tokens and values for your own model."""

from typing import cast

import torch
from torch import Tensor, nn

from numtok.errors import UsageError, unknown
from numtok.library.arguments import as_arguments, check_type, typed
from numtok.library.batch import NumberBatch
from numtok.library.codec import TextCodec
from numtok.models.embedders.base import EMBEDDERS, INIT, Embedder, NumberModule
from numtok.models.heads.base import Head
from numtok.models.inputs import moved
from numtok.models.number_heads import lacks_digits
from numtok.models.precision import InFloat32
from numtok.models.pretrained.rows import fill_rows
from numtok.models.vocabulary import Vocabulary
from numtok.registry import spec_of

ROWS = ("drawn", "digits")  # initialization of the vectors of new tokens


class NumberEmbedding(InFloat32):
    """Module that turns a batch into embedding vectors [B, L, D].

    Use it instead of a model's own embedding. The parameter ``module.table.weight`` contains the
    vector of each token, [vocabulary, D].
    """

    def __init__(self, part: Embedder, codec: TextCodec, width: int) -> None:
        super().__init__()
        check_digits("embedder", part, codec)
        self.module = part.build(Vocabulary.of(codec.inner), width)
        self._part = part
        self._codec = codec.inner

    @property
    def table(self) -> Tensor:
        """Embedding vectors of all tokens, [vocabulary, D]."""
        return self.module.get_parameter("table.weight")

    @torch.no_grad()
    @typed
    def begin_with(self, vectors: Tensor | nn.Embedding, *, rows: str = "drawn") -> None:
        """Initialize the vectors from the token vectors of a pretrained model.

        Pass the model's ``get_input_embeddings()``: the weights alone lack the factor by which
        some models, such as Gemma 3, scale them. The codec must use the model's tokenizer
        (``text_tokenizer="hf:FOLDER_OR_ID"``). Each text token gets its pretrained vector, and the
        other weights that embed numbers are scaled to match.

        Parameters
        ----------
        vectors : Embedding or Tensor
            Pretrained embedding, or vectors [T, D].
        rows : {'drawn', 'digits'}
            How to initialize the vectors of special and number tokens. 'drawn': at random, from the
            distribution of ``vectors``. 'digits': special tokens are drawn as with 'drawn'; each
            number token gets the mean vector of its characters.

        Raises
        ------
        UsageError
            If ``rows`` is not allowed, if the widths differ, or if there are fewer vectors than the
            codec has text tokens.

        Examples
        --------
        >>> embed.begin_with(gpt2.get_input_embeddings())
        """
        if rows not in ROWS:
            raise unknown("rows", rows, ROWS)
        if isinstance(vectors, nn.Embedding):
            ids = torch.arange(vectors.num_embeddings, device=vectors.weight.device)
            vectors = cast(Tensor, vectors(ids))
        text, width = len(self.table) - self._codec.text_first, self.table.shape[1]
        if vectors.dim() != 2 or len(vectors) < text or vectors.shape[1] != width:
            raise UsageError(
                f"vectors must be at least [{text}, {width}] (got {list(vectors.shape)}): one per "
                "text token of the codec, as wide as the embedder. Use the codec and the width of "
                "the pretrained model"
            )
        fill_rows(self.table, vectors, self._codec, by_digits=rows == "digits")
        self._part.rescale(self.module, float(vectors.std(dim=0).mean()) / INIT)

    def forward(self, batch: NumberBatch) -> Tensor:
        """Return the vectors [B, L, D] of a batch.

        Raises UsageError if the batch was made with another codec.
        """
        check_digest(batch, self._codec.digest)
        tokens, of_host = batch.tokens, list[Tensor]()
        if isinstance(self.module, NumberModule):  # other modules need not wait for a device
            inputs = self.module.of_host(tokens.cpu().numpy(), batch.exact.cpu().numpy())
            of_host = [moved(value, tokens.device) for value in inputs]
        return cast(Tensor, self.module(tokens, batch.values, *of_host))


@as_arguments()
@typed
def embedder(spec: str, codec: TextCodec, *, width: int) -> NumberEmbedding:
    """Build an embedder from its spec, such as ``scaled``, ``fourier`` or ``numgpt,dimensions=32``.

    ``scaled`` encodes the size of a number in the length of its vector. Layer norm removes the
    length unless positions are added first, so use ``scaled`` with models that add position
    embeddings, not with rotary ones.

    Parameters
    ----------
    spec : str
        Name of the embedder, optionally with settings.
    codec : numtok.Codec
        Codec that encodes the batches.
    width : int
        Width D of the vectors.

    Raises
    ------
    UsageError
        If the spec is unknown, or if the embedder does not support the codec or the width. For
        example, an embedder that reads all digits does not support a codec that scales numbers.

    Examples
    --------
    >>> embed = numtok.embedder("scaled", codec, width=128)
    >>> embed(numtok.batch(codec, ["2 * 3 = 6"])).shape
    torch.Size([1, 9, 128])
    """
    check_width(width)
    return NumberEmbedding(EMBEDDERS.build(spec), codec, width)


def check_width(width: int) -> None:
    """Raise UsageError if the width of a module is below 1."""
    if width < 1:
        raise UsageError(f"width must be at least 1 (got {width}). Pass the width of the model")


def check_digest(batch: NumberBatch, digest: str) -> None:
    """Raise UsageError unless the batch was made with the codec that has this digest."""
    check_type("batch", batch, NumberBatch)
    if batch.digest != digest:
        raise UsageError(
            "batch was made with another codec than the embedder. Use one codec for both: "
            "codec.save(FOLDER), then numtok.Codec.load(FOLDER)"
        )


def check_digits(option: str, part: Embedder | Head, codec: TextCodec) -> None:
    """Raise UsageError if an embedder or head needs all digits of a number but the codec scales
    numbers.
    """
    encoding = codec.inner.normalizer
    if lacks_digits(part, encoding):
        raise UsageError(
            f"--{option} {spec_of(part)} needs unscaled numbers, but the codec normalizes them "
            f"({spec_of(encoding.normalizer)}). Fit the codec with normalize='none'"
        )
