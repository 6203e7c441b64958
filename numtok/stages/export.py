"""export: writes an artifact to a folder outside the store, in another library's format."""

import secrets
from contextlib import suppress
from pathlib import Path

from numtok import files
from numtok.encoding.dataset_folder import write_dataset
from numtok.errors import UsageError
from numtok.reports import REPORT
from numtok.settings.export import DATASETS, TRANSFORMERS
from numtok.settings.export import Config as Config
from numtok.store.artifact import ENCODED, MODEL, Artifact
from numtok.store.store import Store

_OF = {ENCODED: DATASETS, MODEL: TRANSFORMERS}


def run(config: Config, store: Store) -> None:
    """Export an artifact. The folder gets its final name only when it is complete.

    Raises UsageError if the path exists or the artifact cannot be exported in this format, and
    StoreError if the artifact is damaged or the folder cannot be written.
    """
    artifact, target = store.resolve(config.ref, {*_OF}), config.to
    format = _OF[artifact.kind]
    if config.format not in (None, format):
        raise UsageError(
            f"--format {config.format} does not apply to {artifact.ref} (kind {artifact.kind}). "
            f"Use {format}, or remove --format"
        )
    if target.exists() or target.is_symlink():
        raise UsageError(f"--to {target} already exists. Choose another folder, or remove it")
    begun = target.with_name(f".{target.name}.{secrets.token_hex(4)}.part")
    with files.reporting("write", target):
        files.system.mkdir(begun)
        try:
            if format == DATASETS:
                write_dataset(artifact, begun)
            else:
                _write_model(artifact, store, begun)
            files.fsync_path(begun)
            files.system.rename(begun, target)
        except BaseException:
            with suppress(OSError):
                files.remove_tree(begun)
            raise
    files.fsync_path(target.parent)


def _write_model(artifact: Artifact, store: Store, folder: Path) -> None:
    """Write a model, with a model card that lists its metrics."""
    # Imported late: they load PyTorch, which exporting encoded data does not need.
    import torch

    from numtok.evaluation.model_card import model_card
    from numtok.evaluation.report_files import read
    from numtok.training.model_files import read_model
    from numtok.training.transformers_folder import write_transformers

    loaded = read_model(artifact, torch.device("cpu"))
    alone = write_transformers(loaded, folder)
    reports = [read(child) for child in store.children(artifact) if child.kind == REPORT]
    card = model_card(loaded, reports, alone=alone)
    files.write_atomic(folder / "README.md", card.encode())
