"""``numtok.embedder``: tokens and values to vectors, for a model of your own."""

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
from numtok.models.pretrained.rows import fill_rows
from numtok.models.vocabulary import Vocabulary
from numtok.registry import spec_of

ROWS = ("drawn", "digits")  # what vectors of new tokens begin with


class NumberEmbedding(nn.Module):
    """A module from a batch to vectors [B, L, D] that stand in place of a model's own.

    ``module.table.weight`` has the vector of each token, [vocabulary, D].
    """

    def __init__(self, part: Embedder, codec: TextCodec, width: int) -> None:
        super().__init__()
        check_digits("embedder", part, codec)
        self.module = part.build(Vocabulary.of(codec.inner), width)
        self._part = part
        self._codec = codec.inner

    @property
    def table(self) -> Tensor:
        """[vocabulary, D]: the vector of each token."""
        return self.module.get_parameter("table.weight")

    @torch.no_grad()
    @typed
    def begin_with(self, vectors: Tensor, *, rows: str = "drawn") -> None:
        """Begin with the token vectors [T, D] of a pretrained model, ``get_input_embeddings()``,
        whose tokenizer is that of the codec (``text_tokenizer="hf:FOLDER_OR_ID"``).

        Text tokens have its vectors; those of special and number tokens are drawn as these are
        distributed, or with ``rows="digits"`` numbers have the means of the vectors of their
        characters. What else a number is made of is scaled to them.

        >>> embed.begin_with(gpt2.get_input_embeddings().weight)

        Raises UsageError for other ``rows``, another width, and fewer vectors than the codec has
        tokens of text.
        """
        if rows not in ROWS:
            raise unknown("rows", rows, ROWS)
        text, width = len(self.table) - self._codec.text_first, self.table.shape[1]
        if vectors.dim() != 2 or len(vectors) < text or vectors.shape[1] != width:
            raise UsageError(
                f"the vectors are {list(vectors.shape)}, and the codec has {text:,} tokens of text "
                f"whose vectors are {width} wide here; give those of the model whose tokenizer is "
                "the codec's, and an embedder of its width"
            )
        fill_rows(self.table, vectors, self._codec, by_digits=rows == "digits")
        self._part.rescale(self.module, float(vectors.std(dim=0).mean()) / INIT)

    def forward(self, batch: NumberBatch) -> Tensor:
        """[B, L, D]; UsageError for a batch of another codec."""
        check_digest(batch, self._codec.digest)
        tokens, of_host = batch.tokens, list[Tensor]()
        if isinstance(self.module, NumberModule):  # other modules need not wait for a device
            known = self.module.of_host(tokens.cpu().numpy(), batch.exact.cpu().numpy())
            of_host = [moved(one, tokens.device) for one in known]
        return cast(Tensor, self.module(tokens, batch.values, *of_host))


@as_arguments()
@typed
def embedder(spec: str, codec: TextCodec, *, width: int) -> NumberEmbedding:
    """An embedder of the registry, such as ``scaled``, ``fourier`` or ``numgpt,dimensions=32``.

    ``scaled`` tells the size of a number by the length of its vector, which layer norm takes away
    unless positions were added before: it goes with models that add vectors of positions, and not
    with rotary ones.

    >>> embed = numtok.embedder("scaled", codec, width=128)
    >>> embed(numtok.batch(codec, ["2 * 3 = 6"])).shape
    torch.Size([1, 9, 128])

    Raises UsageError for a spec that does not exist, and for one that cannot embed the tokens of
    the codec, or not in that width, or all of their digits where the codec scales numbers.
    """
    check_width(width)
    return NumberEmbedding(EMBEDDERS.build(spec), codec, width)


def check_width(width: int) -> None:
    """Raise UsageError for a width below 1."""
    if width < 1:
        raise UsageError(f"width must be at least 1 (got {width}). Pass the width of the model")


def check_digest(batch: NumberBatch, digest: str) -> None:
    """Raise UsageError for a batch that another codec made than the one of that digest."""
    check_type("batch", batch, NumberBatch)
    if batch.digest != digest:
        raise UsageError(
            "the batch was made with another codec than the embedder; make both with one codec, "
            "kept with codec.save(FOLDER) and read again with numtok.Codec.load(FOLDER)"
        )


def check_digits(option: str, part: Embedder | Head, codec: TextCodec) -> None:
    """Raise UsageError for an embedder or a head that is of all digits of a number, where the codec
    scales numbers."""
    encoding = codec.inner.normalizer
    if lacks_digits(part, encoding):
        raise UsageError(
            f"--{option} {spec_of(part)} is of numbers as they are in the text, and the codec "
            f"normalises them ({spec_of(encoding.normalizer)}); fit it with normalize='none'"
        )
