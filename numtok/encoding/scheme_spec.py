"""The scheme that a spec stands for, also one that a file holds."""

from pathlib import Path

from numtok.encoding.schemes.base import SCHEMES, Scheme
from numtok.errors import UsageError
from numtok.registry import parse_spec

_GIVEN = "bpe,file="


def scheme_of(spec: str) -> Scheme:
    """As ``SCHEMES.build``, and ``bpe,file=tokenizer.json``: the merges of a given tokenizer.

    Raises UsageError where the spec or the file cannot serve, StoreError where it cannot be read.
    """
    if spec.startswith(_GIVEN):  # the rest is a path, whatever commas it has
        from numtok.encoding.schemes.bpe import BpeScheme

        return BpeScheme.read(Path(spec.removeprefix(_GIVEN)))
    name, _, options = parse_spec(spec, "scheme")
    if name == "bpe" and "file" in options:
        raise UsageError(
            f"scheme {spec!r}: a given tokenizer has a size of its own; write {_GIVEN}PATH and "
            "nothing else"
        )
    return SCHEMES.build(spec)
