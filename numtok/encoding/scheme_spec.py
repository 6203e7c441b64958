"""Builds a scheme from a spec, or from a file that a spec names."""

from pathlib import Path

from numtok.encoding.schemes.base import SCHEMES, Scheme
from numtok.errors import UsageError
from numtok.registry import parse_spec

_GIVEN = "bpe,file="


def scheme_of(spec: str) -> Scheme:
    """Build a scheme like ``SCHEMES.build``; also accepts ``bpe,file=tokenizer.json``, the merges
    of an existing tokenizer.

    Raises UsageError for an invalid spec or file, StoreError for a file that cannot be read.
    """
    if spec.startswith(_GIVEN):  # the rest is a path, whatever commas it has
        from numtok.encoding.schemes.bpe import BpeScheme

        return BpeScheme.read(Path(spec.removeprefix(_GIVEN)))
    name, _, options = parse_spec(spec, "scheme")
    if name == "bpe" and "file" in options:
        raise UsageError(
            f"scheme {spec!r}: file cannot be combined with other settings. Use {_GIVEN}PATH"
        )
    return SCHEMES.build(spec)
