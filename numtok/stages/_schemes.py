"""The scheme that a spec stands for, also one that a file holds."""

from pathlib import Path

from numtok.registry import parse_spec
from numtok.schemes.base import SCHEMES, Scheme


def scheme_of(spec: str) -> Scheme:
    """As ``SCHEMES.build``, and ``bpe,file=tokenizer.json``: the merges of a given tokenizer.

    Raises UsageError where the spec or the file cannot serve, StoreError where it cannot be read.
    """
    name, positional, options = parse_spec(spec, "scheme")
    if name == "bpe" and positional is None and list(options) == ["file"]:
        from numtok.schemes.bpe import BPE

        return BPE.read(Path(options["file"]))
    return SCHEMES.build(spec)
