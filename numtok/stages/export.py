"""An artifact to a folder outside the store, as another library has it."""

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
    """Make the folder, whole or not at all: it gets its name when all is in it.

    Raises UsageError where there is something of that name, and for an artifact that no such folder
    is made of, StoreError where the artifact is damaged, or the folder cannot be written.
    """
    artifact, target = store.resolve(config.ref, {*_OF}), config.to
    format = _OF[artifact.kind]
    if config.format not in (None, format):
        raise UsageError(
            f"--format {config.format} is not for {artifact.ref}, which is of the kind "
            f"{artifact.kind}; give {format}, or leave it out"
        )
    if target.exists() or target.is_symlink():
        raise UsageError(f"--to {target} is there already; name a folder that is not, or remove it")
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
    """A model with a card that has what was measured of it."""
    # Late: they load PyTorch, which encoded data need not.
    import torch

    from numtok.evaluation.model_card import model_card
    from numtok.evaluation.report_files import read
    from numtok.training.model_files import read_model
    from numtok.training.transformers_folder import write_transformers

    loaded = read_model(artifact, torch.device("cpu"))
    alone = write_transformers(loaded, folder)
    reports = [read(one) for one in store.children(artifact) if one.kind == REPORT]
    card = model_card(loaded, reports, alone=alone)
    files.write_atomic(folder / "README.md", card.encode())
