"""A model whose trunk begins with the weights of a pretrained one (``--preset hf:FOLDER``).

Vectors of text tokens are the model's own, and numbers are put in beside them at their scale.
"""

from typing import cast

import torch

from numtok.encoding.codec import Codec
from numtok.errors import UsageError
from numtok.models.embedders.base import INIT
from numtok.models.model import Model
from numtok.models.pretrained.folder import PretrainedFolder
from numtok.models.pretrained.rows import fill_rows
from numtok.models.trunks.base import CachedModule, PretrainedTrunk, TrunkModule
from numtok.store.artifact import Artifact

_LOOK = 6  # tokens of the rows by which a trunk shows what it sees
_NEAR = 1e-3  # states that are the same: of a size of about 1


def check_tokenizer(source: str, trunk: PretrainedTrunk, codec: Codec, encoded: Artifact) -> None:
    """Raise UsageError where the text of the data is not in the tokens of the model there."""
    from numtok.encoding.text_tokenizers.file import File  # imports their library

    words, rows = len(codec.text.vocabulary()), trunk.words
    if not rows:
        return
    folder = PretrainedFolder.of(source)
    same = words == rows
    if (path := folder.tokenizer()) is not None:
        try:
            settings, text = File.read(path)
        except UsageError as error:
            raise UsageError(f"{folder.shown}: {error}") from None
        same = settings == codec.text_tokenizer or text.state() == codec.text.state()
    if not same or words > rows:
        raise UsageError(
            f"{folder.shown} has {rows:,} tokens of its own, and the {words:,} of the text of "
            f"{encoded.ref} are of another tokenizer; encode the data with `--text-tokenizer "
            f"hf:{source}`, or give the preset random=yes for drawn weights"
        )


@torch.no_grad()
def begin_pretrained(model: Model, source: str, codec: Codec) -> None:
    """Give a new model the weights of the pretrained one that lies at ``source``, but for those
    that are to be drawn.

    Raises UsageError where they are not all there, or its trunk does not do what it should.
    """
    trunk = cast(PretrainedTrunk, model.settings.of_trunk)
    weights = trunk.weights(source)
    if weights is not None:
        try:
            trunk.begin(model.trunk, weights)
        except ValueError as error:
            raise UsageError(f"--preset hf:{source}: its weights do not fit ({error})") from None
        outputs = weights.vectors if weights.outputs is None else weights.outputs
        tables = [(model.vectors, weights.vectors)]
        if model.outputs is not None and (weights.outputs is not None or trunk.tied):
            tables.insert(0, (model.outputs, outputs))
        for name, own_TD in tables:
            table_VD = model.get_parameter(name)
            fill_rows(table_VD, own_TD, codec, by_digits=trunk.by_digits)
        model.rescale(float(weights.vectors.std(dim=0).mean()) / INIT)
    _check_sight(model.trunk, model.objective.causal, trunk.width, f"--preset hf:{source}")


def _check_sight(module: TrunkModule, causal: bool, width: int, shown: str) -> None:
    """Raise UsageError for a trunk whose states see other tokens than they should, or which goes on
    from its cache in another way than it reads a row: architectures differ in both."""
    random = torch.Generator().manual_seed(0)
    x_BLD = torch.randn(2, _LOOK, width, generator=random)
    other_BLD = x_BLD.clone()
    other_BLD[:, -1] = x_BLD[:, -1].flip(1)
    before, training = _LOOK - 1, module.training
    module.eval()
    try:
        states, others = module(x_BLD, None), module(other_BLD, None)
        wrong = torch.allclose(states[:, :before], others[:, :before], atol=_NEAR) is not causal
        if causal and isinstance(module, CachedModule) and not wrong:
            cache = module.cache(len(x_BLD), _LOOK)
            module.extend(x_BLD[:, :before], cache)
            cache.rewind(torch.full((len(x_BLD),), before), before)
            last = module.extend(x_BLD[:, before:], cache)
            wrong = not torch.allclose(last, states[:, before:], rtol=_NEAR, atol=_NEAR)
    except (RuntimeError, TypeError, ValueError, IndexError, AttributeError) as error:
        raise UsageError(
            f"{shown}: its architecture cannot be a trunk ({' '.join(str(error).split())[:200]}); "
            "give a model of another one, such as GPT-2, Llama, Qwen or RoBERTa"
        ) from None
    finally:
        module.train(training)
    if wrong:
        kind = "causal" if causal else "masked"
        raise UsageError(
            f"{shown}: its states see other tokens than those of a {kind} model, or it goes on "
            "from what it has read in another way; give a model of another architecture, such as "
            "GPT-2, Llama, Qwen or RoBERTa"
        )
