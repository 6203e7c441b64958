"""bpe:N: a number as written, split by byte-pair merges. ``-60.25`` -> ``- 60.2 5``."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from numtok import documents
from numtok.declaration import LEARNED, setting
from numtok.encoding.huggingface import encode_texts, panics
from numtok.encoding.numeral_states import CHARACTERS
from numtok.encoding.schemes._literals import LiteralScheme, occurs, spell, with_extras
from numtok.encoding.schemes.base import Encoded, FittedScheme
from numtok.errors import UsageError
from numtok.numerals.column import Numerals
from numtok.registry import spec_of

if TYPE_CHECKING:
    from tokenizers import Tokenizer

_BYTES = np.frombuffer(CHARACTERS[:-1].encode() + b"~", np.uint8)
_LARGEST = 256 << 20  # bytes of a tokenizer.json
_TRAINED_ON = 1_000_000  # numbers, about: the trainer reads each as often as it occurs
_LEAST_PAIRS = 2  # pairs that occur only once are not merged
# Signs, points, exponents, and long runs of digits, which some tokenizers split before merging.
_PROBES = (
    *("7", "42", "-60.2", "1234", "0.1435", "2024", "1,234,567", "23%", "+5", ".5", "-0.25"),
    *("1e-05", "6.02E23", "100000", "99999999", "314159265358979", "-0.000123", "1.5e+300"),
)


@dataclass(frozen=True)
class BpeScheme(LiteralScheme, FittedScheme):
    """Byte pair encoding of numbers: tokens are frequent runs of characters, as in a language
    model's tokenizer.

    Merges are trained (Sennrich et al. 2016) on the numbers of the train split only. For large
    data, they are trained on a uniform sample, which does not depend on the order of files. No
    merge crosses the boundary of a number, but a merge may combine sign, digits and decimal point.
    (GPT-2 differs: it puts the space before a number into its first token, and splits between sign,
    digits and point before merging.) Any literal can be written, if necessary character by
    character. The split depends on the digits, not on the value: 60.2 and 60.3 may have different
    lengths.

    The number of mask tokens reveals the length of a masked number, and therefore something about
    its value. xVal (Appendix B.3) shows models that exploit this; ``numtok profile`` measures how
    much is revealed.

    Decoding accepts any split of a literal into tokens.

    size
        Maximum number of tokens, including the 18 characters.
    """

    revision: ClassVar[int] = 2
    source: ClassVar[str] = "xVal, Appendix B.3"
    positional: ClassVar[str] = "size"
    # Trained on these rows: first ".2", which occurs three times, then "0.2", "60.2".
    golden: ClassVar[tuple[tuple[str, str, str], ...]] = (
        ("60.2", "60.2", "60.2"),
        ("-60.2", "- 60.2", "-60.2"),
        ("60.25", "60.2 5", "60.25"),
        ("7e5", "7 e 5", "7e5"),
        ("\u22121,234%", "\u2212 1 , 2 3 4 %", "\u22121,234%"),
    )
    digest: ClassVar[str] = "6ac66d57c0509f22"

    size: int = setting(1024, at_least=len(CHARACTERS), at_most=1_000_000)
    #: Trained merges, or those of an existing tokenizer (:meth:`read`): the two parts of each, in
    #: order, as ``. 2;0 .2``. Empty: each character is a token. None: not trained yet.
    merges: str | None = field(default=None, metadata=LEARNED)
    #: Whether the merges come from an existing tokenizer.
    given: bool = field(default=False, metadata=LEARNED)

    @classmethod
    def read(cls, path: Path) -> "BpeScheme":
        """Create a scheme from the merges for numbers in a ``tokenizer.json``. The scheme is
        identified by these merges, not by the path.

        Raises UsageError if the file cannot be read, has no merges of digits, or does not split
        numbers only by merges (for example, if it first splits them into groups of three digits).
        """
        shown = f"bpe: {path}"
        content = documents.read(path, shown, _LARGEST)
        merges = _merges_of(documents.json(content, shown))
        advice = "Use the tokenizer.json of another model, or bpe:N to train merges"
        if not merges:
            what = "is not a byte pair encoding" if merges is None else "has no merges of digits"
            raise UsageError(f"bpe: {path} {what}. {advice}")
        scheme = cls(len(_pieces(merges)), merges, given=True)
        try:
            cuts = _cuts_of(content)
        except Exception as error:  # the library raises nothing more specific
            raise UsageError(f"{shown} cannot be read ({error}). {advice}") from None
        for literal, expected in cuts.items():
            encoded = scheme.encode(Numerals.of_literals([literal]))
            own = [scheme.pieces[token] for token in encoded.tokens]
            if own != expected:
                raise UsageError(
                    f"bpe: {path} splits {literal} into {' '.join(expected)!r}, but its merges "
                    f"give {' '.join(own)!r}. Only "
                    f"tokenizers that just merge can be used. {advice}"
                )
        return scheme

    @property
    def needs_sample(self) -> bool:
        return self.merges is None and self.size > len(CHARACTERS)

    @property
    def title(self) -> str:
        """Display name: the spec and, if the merges come from an existing tokenizer, a digest of
        the merges. A path would not identify the merges, because files may move."""
        if not self.given or self.merges is None:
            return spec_of(self)
        digest = blake2b(self.merges.encode(), digest_size=4).hexdigest()
        return f"{spec_of(self)} (given {digest})"

    def fit(self, literals: Mapping[str, int]) -> "BpeScheme":
        """Return the scheme with merges trained on ``literals``, which maps each literal to its
        count. If there are many numbers, an evenly spaced sample of the sorted literals is used,
        which preserves the total weight of rare literals.

        >>> BpeScheme(19).fit({"60.2": 2, "7.2": 1}).merges
        '. 2'
        """
        if not self.needs_sample:
            return self
        from tokenizers import Tokenizer, models, trainers

        ordered = sorted(literal for literal in literals if not set(literal) - set(CHARACTERS))
        upto = np.cumsum([literals[literal] for literal in ordered], dtype=np.int64)
        scale = max(1, int(upto[-1]) // _TRAINED_ON) if ordered else 1
        times = np.diff(upto // scale, prepend=0).tolist()
        tokenizer = Tokenizer(models.BPE())
        trainer = trainers.BpeTrainer(
            vocab_size=self.size,
            min_frequency=_LEAST_PAIRS,
            initial_alphabet=list(CHARACTERS),
            show_progress=False,
        )
        tokenizer.train_from_iterator(
            ([literal] * count for literal, count in zip(ordered, times, strict=True)), trainer
        )
        merges = json.loads(tokenizer.to_str())["model"]["merges"]
        return replace(self, merges=";".join(" ".join(pair) for pair in merges))

    @cached_property
    def pieces(self) -> tuple[str, ...]:
        return _pieces(self.merges or "")

    def encode(self, numerals: Numerals) -> Encoded:
        characters, lengths, outcomes = spell(numerals)
        if not self.merges:
            return with_extras(characters.astype(np.uint32), lengths, outcomes, len(self.pieces))
        bounds = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
        ids, lengths = encode_texts(_tokenizer(self.merges), _BYTES[characters], bounds)
        return with_extras(ids, lengths, outcomes, len(self.pieces))


def _pieces(merges: str) -> tuple[str, ...]:
    """Return the characters and merged pieces, each once: two merges may give the same piece."""
    merged = merges.replace(" ", "").split(";") if merges else []
    return tuple(dict.fromkeys([*CHARACTERS, *merged]))


@lru_cache(4)
def _tokenizer(merges: str) -> "Tokenizer":
    """Return a tokenizer for literals in which U+2212 is ``~``, so that each character is a
    byte."""
    from tokenizers import Tokenizer, models

    plain = merges.replace(CHARACTERS[-1], "~")
    ids = {piece.replace(CHARACTERS[-1], "~"): index for index, piece in enumerate(_pieces(merges))}
    pairs = [pair.partition(" ")[::2] for pair in plain.split(";")]
    return Tokenizer(models.BPE(ids, pairs))


# --- the tokenizer.json of another model --------------------------------------------------------


def _merges_of(settings: Any) -> str | None:
    """Return the merges that give parts of numerals, in order, in the format of
    ``BpeScheme.merges``; None if the content is not a byte pair encoding."""
    try:
        model = settings["model"]
        if model["type"] != "BPE":
            return None
        return ";".join(" ".join(pair) for pair in _pairs_of(model) if occurs("".join(pair)))
    except (KeyError, TypeError):
        return None


def _pairs_of(model: dict[str, Any]) -> list[Sequence[str]]:
    """Return all merges; older files store them as strings."""
    return [pair.split(" ") if isinstance(pair, str) else pair for pair in model["merges"]]


def _cuts_of(content: bytes) -> dict[str, list[str]]:
    """Return how the complete tokenizer splits a set of isolated numbers."""
    from tokenizers import Tokenizer

    with panics():
        tokenizer = Tokenizer.from_str(content.decode())
        return {
            literal: tokenizer.encode(literal, add_special_tokens=False).tokens
            for literal in _PROBES
        }
