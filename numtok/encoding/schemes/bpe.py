"""bpe:N: a number as written, cut by learnt merges of byte pairs. ``-60.25`` -> ``- 60.2 5``."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from numtok import documents
from numtok.declaration import setting
from numtok.encoding.huggingface import encode_texts, panics
from numtok.encoding.schemes._literals import CHARACTERS, LiteralScheme, occurs, spell, with_extras
from numtok.encoding.schemes.base import Encoded, FittedScheme
from numtok.errors import UsageError
from numtok.numerals.column import Numerals
from numtok.registry import LEARNT, spec_of

if TYPE_CHECKING:
    from tokenizers import Tokenizer

_BYTES = np.frombuffer(CHARACTERS[:-1].encode() + b"~", np.uint8)
_LARGEST = 256 << 20  # bytes of a tokenizer.json
_LEARNT_FROM = 1_000_000  # numbers, about: the trainer reads each as often as it counts
_LEAST_PAIRS = 2  # what comes once is not merged
# Signs, points, exponents, and runs of many digits, which some tokenizers cut before they merge.
_PROBES = (
    *("7", "42", "-60.2", "1234", "0.1435", "2024", "1,234,567", "23%", "+5", ".5", "-0.25"),
    *("1e-05", "6.02E23", "100000", "99999999", "314159265358979", "-0.000123", "1.5e+300"),
)


@dataclass(frozen=True)
class BpeScheme(LiteralScheme, FittedScheme):
    """What a language model's own tokenizer makes of numbers: frequent runs of characters.

    Merges are learnt (Sennrich et al. 2016) on the numbers of the train split alone, of many on a
    sample in which each is as likely as any other, so the order of files is nothing to them. Each
    number is a piece of its own: no merge crosses its border, but sign, digits and point may come
    together. GPT-2 does otherwise: it takes the space before a number into its first token, and
    cuts between sign, digits and point before it merges. What was not learnt is written character
    by character, so any literal can be. How a number is cut follows its digits, not its value: 60.2
    and 60.3 may have different lengths. The number of masks of a masked number tells how many
    tokens it has, and so something of its value; xVal (Appendix B.3) shows models that exploit
    this, and ``numtok profile`` how much there is to exploit.

    A model may say a literal in other pieces than it is written in: it is read all the same.

    size
        The most tokens, the 18 characters among them.
    merges
        Learnt, or of a given tokenizer (:meth:`read`): the two parts of each merge, the first merge
        first, as ``. 2;0 .2``; without any, each character is a token. None where nothing has been
        looked at yet.
    given
        Whether they are those of a given tokenizer.
    """

    revision: ClassVar[int] = 2
    source: ClassVar[str] = "xVal, Appendix B.3"
    positional: ClassVar[str] = "size"
    # As learnt from these rows: first ".2", which comes three times, then "0.2", "60.2".
    golden: ClassVar[tuple[tuple[str, str, str], ...]] = (
        ("60.2", "60.2", "60.2"),
        ("-60.2", "- 60.2", "-60.2"),
        ("60.25", "60.2 5", "60.25"),
        ("7e5", "7 e 5", "7e5"),
        ("\u22121,234%", "\u2212 1 , 2 3 4 %", "\u22121,234%"),
    )
    digest: ClassVar[str] = "6ac66d57c0509f22"

    size: int = setting(1024, at_least=len(CHARACTERS), at_most=1_000_000)
    merges: str | None = field(default=None, metadata=LEARNT)
    given: bool = field(default=False, metadata=LEARNT)

    @classmethod
    def read(cls, path: Path) -> "BpeScheme":
        """The scheme with the merges that a ``tokenizer.json`` has for numbers, as many as there
        are; known by them and not by the path.

        Raises UsageError for a file that cannot be read, is without such merges, or cuts numbers
        otherwise than by merges alone (in threes, say).
        """
        shown = f"bpe: {path}"
        content = documents.read(path, shown, _LARGEST)
        merges = _merges_of(documents.json(content, shown))
        advice = "give the tokenizer.json of another model, or bpe:N to learn merges"
        if not merges:
            what = "is no byte pair encoding" if merges is None else "has no merges of digits"
            raise UsageError(f"bpe: {path} {what}; {advice}")
        scheme = cls(len(_pieces(merges)), merges, given=True)
        try:
            cuts = _cuts_of(content)
        except Exception as error:  # the library raises nothing more specific
            raise UsageError(f"{shown} cannot be read ({error}); {advice}") from None
        for literal, expected in cuts.items():
            encoded = scheme.encode(Numerals.of_literals([literal]))
            own = [scheme.pieces[token] for token in encoded.tokens]
            if own != expected:
                raise UsageError(
                    f"bpe: {path} cuts {literal} into {' '.join(expected)!r}, its merges alone "
                    f"into {' '.join(own)!r}: a tokenizer that does more to numbers than merging "
                    f"is not taken; {advice}"
                )
        return scheme

    @property
    def needs_sample(self) -> bool:
        return self.merges is None and self.size > len(CHARACTERS)

    @property
    def title(self) -> str:
        """Merges that were given are told by a digest: files may move, and sizes be the same."""
        if not self.given or self.merges is None:
            return spec_of(self)
        digest = blake2b(self.merges.encode(), digest_size=4).hexdigest()
        return f"{spec_of(self)} (given {digest})"

    def fit(self, literals: Mapping[str, int]) -> "BpeScheme":
        """The scheme with the merges of the most frequent pairs. Of many numbers one in so many is
        taken, literals in their order, so that rare ones together weigh as much as before.

        >>> BpeScheme(19).fit({"60.2": 2, "7.2": 1}).merges
        '. 2'
        """
        if not self.needs_sample:
            return self
        from tokenizers import Tokenizer, models, trainers

        known = sorted(one for one in literals if not set(one) - set(CHARACTERS))
        upto = np.cumsum([literals[one] for one in known], dtype=np.int64)
        scale = max(1, int(upto[-1]) // _LEARNT_FROM) if known else 1
        times = np.diff(upto // scale, prepend=0).tolist()
        tokenizer = Tokenizer(models.BPE())
        trainer = trainers.BpeTrainer(
            vocab_size=self.size,
            min_frequency=_LEAST_PAIRS,
            initial_alphabet=list(CHARACTERS),
            show_progress=False,
        )
        tokenizer.train_from_iterator(
            ([one] * count for one, count in zip(known, times, strict=True)), trainer
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
    """The characters and what is merged of them, each once: "123" may come of two merges."""
    merged = merges.replace(" ", "").split(";") if merges else []
    return tuple(dict.fromkeys([*CHARACTERS, *merged]))


@lru_cache(4)
def _tokenizer(merges: str) -> "Tokenizer":
    """Cuts literals in which U+2212 is ``~``, so that each character is a byte."""
    from tokenizers import Tokenizer, models

    plain = merges.replace(CHARACTERS[-1], "~")
    ids = {piece.replace(CHARACTERS[-1], "~"): index for index, piece in enumerate(_pieces(merges))}
    pairs = [pair.partition(" ")[::2] for pair in plain.split(";")]
    return Tokenizer(models.BPE(ids, pairs))


# --- the tokenizer.json of another model --------------------------------------------------------


def _merges_of(settings: Any) -> str | None:
    """The merges that make parts of numerals, in their order, as ``BPE.merges`` has them; None
    where the file's content is no byte pair encoding."""
    try:
        model = settings["model"]
        if model["type"] != "BPE":
            return None
        return ";".join(" ".join(pair) for pair in _pairs_of(model) if occurs("".join(pair)))
    except (KeyError, TypeError):
        return None


def _pairs_of(model: dict[str, Any]) -> list[Sequence[str]]:
    """All merges; older files have them as strings."""
    return [pair.split(" ") if isinstance(pair, str) else pair for pair in model["merges"]]


def _cuts_of(content: bytes) -> dict[str, list[str]]:
    """How the whole tokenizer cuts some numbers that stand alone."""
    from tokenizers import Tokenizer

    with panics():
        tokenizer = Tokenizer.from_str(content.decode())
        return {
            literal: tokenizer.encode(literal, add_special_tokens=False).tokens
            for literal in _PROBES
        }
