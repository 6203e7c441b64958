"""file: an existing ``tokenizer.json``.

It is selected with ``--text-tokenizer path/to/tokenizer.json`` or, for the tokenizer of a
pretrained model, with ``--text-tokenizer hf:FOLDER``.
"""

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
    """The unchanged byte-level tokenizer of an existing model, identified by the content of its
    file.

    sha256
        Digest of the file. The path is not a setting, so a copy of the file at another path gives
        the same encoded data.
    """

    revision: ClassVar[int] = 1
    needs_sample: ClassVar[bool] = False
    checked_at: ClassVar[str] = "file,sha256=0"
    sha256: str

    @classmethod
    def read(cls, path: Path) -> tuple["File", HuggingFace]:
        """Read a ``tokenizer.json``. Returns the settings and the tokenizer. Raises UsageError if
        the tokenizer cannot be used."""
        shown = f"text tokenizer {path}"
        content = documents.read(path, shown, _LARGEST)
        settings = documents.json(content, shown)
        return cls(hashlib.sha256(content).hexdigest()), HuggingFace(settings, str(path))

    @classmethod
    def of_model(cls, source: str) -> tuple["File", HuggingFace]:
        """Read the tokenizer of a pretrained model, given as a folder or a hub id. Returns the
        settings and the tokenizer. Raises UsageError if the model has no ``tokenizer.json``."""
        folder = model_folder(source, [TOKENIZER], [TOKENIZER])
        if not (folder / TOKENIZER).is_file():
            raise UsageError(
                f"text tokenizer {PREFIX}{source}: {TOKENIZER} not found in the folder. To convert "
                "a tokenizer in another format: AutoTokenizer.from_pretrained(FOLDER)"
                ".save_pretrained(FOLDER)"
            )
        return cls.read(folder / TOKENIZER)

    def fit(self, sample: Texts) -> HuggingFace:
        raise UsageError(
            "the text tokenizer 'file' must be given as a path: "
            "--text-tokenizer path/to/tokenizer.json"
        )

    def load(self, state: dict[str, Any]) -> HuggingFace:
        return HuggingFace(state.get("tokenizer"), "file")
