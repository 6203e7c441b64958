"""A given ``tokenizer.json``: ``--text-tokenizer path/to/tokenizer.json``."""

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from numtok import documents
from numtok.encoding.text_tokenizers._huggingface import HuggingFace
from numtok.encoding.text_tokenizers.base import Pieces, TextTokenizer
from numtok.errors import UsageError

_LARGEST = 256 << 20  # bytes


@dataclass(frozen=True)
class File(TextTokenizer):
    """The byte-level tokenizer of an existing model, unchanged, known by its content.

    sha256
        Of the file's bytes; the path is no setting, so the same file elsewhere gives the same data.
    """

    revision: ClassVar[int] = 1
    needs_sample: ClassVar[bool] = False
    checked_at: ClassVar[str] = "file,sha256=0"
    sha256: str

    @classmethod
    def read(cls, path: Path) -> tuple["File", HuggingFace]:
        """The settings and the tokenizer that a file holds; UsageError if it cannot serve."""
        shown = f"text tokenizer {path}"
        content = documents.read(path, shown, _LARGEST)
        settings = documents.json(content, shown)
        return cls(hashlib.sha256(content).hexdigest()), HuggingFace(settings, str(path))

    def fit(self, sample: Pieces) -> HuggingFace:
        raise UsageError(
            "the text tokenizer 'file' is named by its path: "
            "--text-tokenizer path/to/tokenizer.json"
        )

    def load(self, state: dict[str, Any]) -> HuggingFace:
        return HuggingFace(state.get("tokenizer"), "file")
