"""Small tokenizers of every kind in transformers, built without a download."""

from typing import Any

from tokenizers import Tokenizer, decoders, models

#: Digits and lookalikes, in a vocabulary that marks spaces.
LOOKALIKES = (
    "5",
    "\u25815",
    "123",
    "\u2581123",
    "05",
    "\u00b2",
    "\u00bd",
    "5.",
    "1,",
    "x1",
    "\uff15",
)


def marked_spaces(*tokens: str) -> Tokenizer:
    """Return a tokenizer like Llama's: every byte, then these tokens, with U+2581 for a space."""
    names = ["<unk>", *(f"<0x{byte:02X}>" for byte in range(256)), *tokens]
    vocabulary = {name: index for index, name in enumerate(names)}
    made = Tokenizer(models.BPE(vocabulary, [], byte_fallback=True, unk_token="<unk>"))
    made.decoder = decoders.Sequence(
        [decoders.Replace("\u2581", " "), decoders.ByteFallback(), decoders.Fuse()]
    )
    made.add_special_tokens(["<unk>"])
    return made


def word_pieces(*tokens: str) -> Tokenizer:
    """Return a tokenizer like BERT's, in which ``##`` continues a word."""
    vocabulary = {name: index for index, name in enumerate(("[UNK]", *tokens))}
    made = Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]"))
    made.decoder = decoders.WordPiece()
    made.add_special_tokens(["[UNK]"])
    return made


def for_transformers(tokenizer: Tokenizer, **settings: Any) -> Any:
    """Return the tokenizer for transformers, with an EOS token that also pads, on the left."""
    from transformers import PreTrainedTokenizerFast

    end = {"eos_token": "<|endoftext|>", "pad_token": "<|endoftext|>", "padding_side": "left"}
    kind: Any = PreTrainedTokenizerFast
    return kind(tokenizer_object=tokenizer, **(end | settings))
