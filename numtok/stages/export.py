"""An artifact to a folder outside the store, as another library has it."""

import secrets
from contextlib import suppress

from numtok import files
from numtok.encoding.dataset_folder import write_dataset
from numtok.errors import UsageError
from numtok.records import ENCODED
from numtok.settings.export import Config as Config
from numtok.store.store import Store


def run(config: Config, store: Store) -> None:
    """Make the folder, whole or not at all: it gets its name when all is in it.

    Raises UsageError where there is something of that name, StoreError where the artifact is
    damaged or the folder cannot be written.
    """
    artifact, target = store.resolve(config.ref, {ENCODED}), config.to
    if target.exists() or target.is_symlink():
        raise UsageError(f"--to {target} is there already; name a folder that is not, or remove it")
    begun = target.with_name(f".{target.name}.{secrets.token_hex(4)}.part")
    with files.reporting("write", target):
        files.system.mkdir(begun)
        try:
            write_dataset(artifact, begun)
            files.fsync_path(begun)
            files.system.rename(begun, target)
        except BaseException:
            with suppress(OSError):
                files.remove_tree(begun)
            raise
    files.fsync_path(target.parent)
