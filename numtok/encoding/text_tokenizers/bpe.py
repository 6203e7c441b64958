"""bpe:N: byte-level byte pair encoding with N tokens, trained on a sample of the text."""

import json
from dataclasses import dataclass
from typing import Any, ClassVar

from numtok.declaration import setting
from numtok.encoding.byte_alphabet import ALPHABET
from numtok.encoding.text_tokenizers._huggingface import HuggingFace
from numtok.encoding.text_tokenizers.base import TextTokenizer
from numtok.encoding.texts import Texts


@dataclass(frozen=True)
class BpeTokenizer(TextTokenizer):
    """Byte-level byte pair encoding (Sennrich et al. 2016), trained with Hugging Face's tokenizers
    library.

    size
        Number of tokens, including the 256 bytes.
    """

    revision: ClassVar[int] = 1
    needs_sample: ClassVar[bool] = True
    digest: ClassVar[str] = "ed8fa652f9f5819d"
    positional: ClassVar[str] = "size"
    checked_at: ClassVar[str] = "bpe:300"
    size: int = setting(at_least=256, at_most=1_000_000)

    def fit(self, sample: Texts) -> HuggingFace:
        from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

        tokenizer = Tokenizer(models.BPE())
        tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
        tokenizer.decoder = decoders.ByteLevel()
        trainer = trainers.BpeTrainer(
            vocab_size=self.size, initial_alphabet=list(ALPHABET), show_progress=False
        )
        tokenizer.train_from_iterator(sample.strings(), trainer)
        return HuggingFace(json.loads(tokenizer.to_str()), f"bpe:{self.size}")

    def load(self, state: dict[str, Any]) -> HuggingFace:
        return HuggingFace(state.get("tokenizer"), f"bpe:{self.size}")
