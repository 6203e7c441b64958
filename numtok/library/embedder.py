"""``numtok.embedder``: tokens and values to vectors, for a model of your own."""

from typing import cast

from torch import Tensor, nn

from numtok.errors import UsageError
from numtok.library.batch import NumberBatch
from numtok.library.codec import TextCodec
from numtok.library.wording import as_arguments
from numtok.models.embedders.base import EMBEDDERS
from numtok.models.vocabulary import Vocabulary


class NumberEmbedding(nn.Module):
    """A module from a batch to vectors [B, L, D] that stand in place of a model's own.

    ``module.table.weight`` has the vector of each token, [vocabulary, D].
    """

    def __init__(self, module: nn.Module, digest: str) -> None:
        super().__init__()
        self.module = module
        self._digest = digest

    def forward(self, batch: NumberBatch) -> Tensor:
        """[B, L, D]; UsageError for a batch of another codec."""
        check_digest(batch, self._digest)
        return cast(Tensor, self.module(batch.tokens, batch.values))


@as_arguments()
def embedder(spec: str, codec: TextCodec, *, width: int) -> NumberEmbedding:
    """An embedder of the registry, such as ``scaled``, ``fourier`` or ``numgpt,dimensions=32``.

    ``scaled`` tells the size of a number by the length of its vector, which layer norm takes away
    unless positions were added before: it goes with models that add vectors of positions, and not
    with rotary ones.

    >>> embed = numtok.embedder("scaled", codec, width=128)
    >>> embed(numtok.batch(codec, ["2 * 3 = 6"])).shape
    torch.Size([1, 9, 128])

    Raises UsageError for a spec that does not exist, and for one that cannot embed the tokens of
    the codec, or not in that width.
    """
    if width < 1:
        raise UsageError(f"width {width} is not possible; it is 1 or more, that of the model")
    made = EMBEDDERS.build(spec)
    return NumberEmbedding(made.build(Vocabulary.of(codec.inner), width), codec.digest)


def check_digest(batch: NumberBatch, digest: str) -> None:
    """Raise UsageError for a batch that another codec made than the one of that digest."""
    if batch.digest != digest:
        raise UsageError(
            "the batch was made with another codec than the embedder; make both with one codec, "
            "kept with codec.save(FOLDER) and read again with numtok.Codec.load(FOLDER)"
        )
