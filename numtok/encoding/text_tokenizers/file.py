"""A given ``tokenizer.json``: ``--text-tokenizer path/to/tokenizer.json``, or ``hf:FOLDER`` for
that of a pretrained model."""

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from numtok import documents
from numtok.encoding.model_folder import PREFIX, TOKENIZER, model_folder
from numtok.encoding.text_tokenizers._huggingface import HuggingFace
from numtok.encoding.text_tokenizers.base import TextTokenizer
from numtok.encoding.texts import Texts
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

    @classmethod
    def of_model(cls, source: str) -> tuple["File", HuggingFace]:
        """Those of a pretrained model, a folder or a hub id; UsageError where it has none."""
        folder = model_folder(source, [TOKENIZER], [TOKENIZER])
        if not (folder / TOKENIZER).is_file():
            raise UsageError(
                f"text tokenizer {PREFIX}{source}: the folder has no {TOKENIZER}; where the model "
                "has a tokenizer of another form, AutoTokenizer.from_pretrained(FOLDER)"
                ".save_pretrained(FOLDER) writes one"
            )
        return cls.read(folder / TOKENIZER)

    def fit(self, sample: Texts) -> HuggingFace:
        raise UsageError(
            "the text tokenizer 'file' is named by its path: "
            "--text-tokenizer path/to/tokenizer.json"
        )

    def load(self, state: dict[str, Any]) -> HuggingFace:
        return HuggingFace(state.get("tokenizer"), "file")
